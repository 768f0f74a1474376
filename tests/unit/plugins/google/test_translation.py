"""Google's service on a real gRPC server and mailbox; the tests themselves play the engine."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import grpc.aio
import pytest

from dragoman import DeadlineExceededError, InvalidRequestError, LoadingError, UnauthenticatedError, UnknownModelError
from dragoman.errors import from_rpc_error
from plugins.access import api_keys
from plugins.access.api_keys import KeyStore
from plugins.access.callers import KeyHolders
from plugins.google.translation import GoogleTranslation
from plugins.google.v3 import translation_service_pb2 as google
from plugins.terms.glossaries import StoredGlossaries
from service.handlers.gate import Gate
from service.handlers.translation import TranslationHandlers
from service.rpc import methods
from service.settings import Settings
from service.telemetry.access_log import AccessLog
from service.telemetry.metrics import Metrics
from tests.grpc_server import grpc_server
from tests.unit.service.played_engine import PATIENCE_S, PlayedEngine, until

SERVICE = "/google.cloud.translation.v3.TranslationService/"
COUNTED = {
    "TranslateText": "TranslateText",
    "DetectLanguage": "DetectLanguage",
    "GetSupportedLanguages": "ListModels",
}
FIELDS = {"parent": "projects/p", "contents": ["tom"], "source_language_code": "en", "target_language_code": "de"}


@pytest.fixture
async def serve() -> AsyncIterator[Callable]:
    """Serves handlers; gives a channel."""
    async with AsyncExitStack() as opened:

        async def start(handlers: TranslationHandlers, max_request_bytes: int = 1_000_000) -> grpc.aio.Channel:
            service = GoogleTranslation(
                handlers, Settings(max_request_bytes=max_request_bytes, max_answer_bytes=4_000_000)
            )
            address = await opened.enter_async_context(grpc_server(service.add_to))
            return await opened.enter_async_context(grpc.aio.insecure_channel(address))

        yield start


def call(channel: grpc.aio.Channel, name: str, request: bytes, **options: object) -> grpc.aio.UnaryUnaryCall:
    return channel.unary_unary(SERVICE + name)(request, timeout=PATIENCE_S, **options)


def translate(channel: grpc.aio.Channel, **fields: object) -> grpc.aio.UnaryUnaryCall:
    return call(channel, "TranslateText", google.TranslateTextRequest(**(FIELDS | fields)).SerializeToString())


async def refused(call: grpc.aio.UnaryUnaryCall) -> Exception:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return from_rpc_error(caught.value)


async def test_a_translation_is_counted_as_one_of_this_protocol(serve, played: PlayedEngine) -> None:
    channel = await serve(played.handlers)
    answer = asyncio.ensure_future(translate(channel))
    [segment] = await played.taken(1)
    assert segment.source_ids
    played.exhaust(segment)
    made = google.TranslateTextResponse.FromString(await answer)
    assert made == google.TranslateTextResponse(translations=[{"translated_text": "tom"}])
    assert played.metrics.total("requests_total", method="TranslateText", code="OK", protocol="google") == 1
    [record] = played.records
    assert (record.protocol, record.model, record.texts) == ("google", "en-de", 1)


async def test_a_client_that_leaves_withdraws_its_segments(serve, played: PlayedEngine) -> None:
    answer = translate(await serve(played.handlers))
    [segment] = await played.taken(1)
    answer.cancel()
    counted = {"method": "TranslateText", "code": "CANCELLED", "protocol": "google"}
    await until(lambda: played.metrics.total("requests_total", **counted) == 1)
    assert segment.cancel_requested
    with contextlib.suppress(asyncio.CancelledError):
        await answer.code()


@pytest.mark.parametrize("name", COUNTED)
async def test_what_is_no_request_is_refused_and_counted(serve, played: PlayedEngine, name: str) -> None:
    channel = await serve(played.handlers, max_request_bytes=1_000)
    for request in (b"", b"\xff", b"a" * 1_001):  # without a parent, broken, too large
        assert isinstance(await refused(call(channel, name, request)), InvalidRequestError)
    counted = {"method": COUNTED[name], "code": "INVALID_ARGUMENT", "protocol": "google"}
    assert played.metrics.total("requests_total", **counted) == 3


async def test_a_text_that_fails_the_call_names_the_request(serve, played: PlayedEngine) -> None:
    channel = await serve(played.handlers, max_request_bytes=3_000_000)
    error = await refused(translate(channel, contents=["a" * 2_000_000], source_language_code=""))
    assert isinstance(error, InvalidRequestError)
    [record] = played.records
    assert (error.request_id, record.failed_texts) == (record.request_id, 0)
    assert record.code is grpc.StatusCode.INVALID_ARGUMENT


async def test_languages_of_an_unknown_model_are_a_call_that_failed(serve, played: PlayedEngine) -> None:
    request = google.GetSupportedLanguagesRequest(parent="projects/p", model="projects/p/locations/l/models/none")
    channel = await serve(played.handlers)
    error = await refused(call(channel, "GetSupportedLanguages", request.SerializeToString()))
    assert isinstance(error, UnknownModelError)
    [record] = played.records
    assert (record.method, record.code, record.request_id) == ("ListModels", UnknownModelError.code, error.request_id)


@pytest.mark.parametrize("name", COUNTED)
async def test_a_message_that_never_comes_is_not_waited_for(serve, played: PlayedEngine, monkeypatch, name) -> None:
    monkeypatch.setattr(methods, "ARRIVAL_TIMEOUT_S", 0.05)
    silent = (await serve(played.handlers)).stream_unary(SERVICE + name)(timeout=PATIENCE_S)
    error = await refused(silent)
    assert isinstance(error, DeadlineExceededError)
    assert "within 0.05 s" in error.message


@pytest.mark.parametrize("name", COUNTED)
async def test_a_server_that_loads_says_so(serve, closed_played: PlayedEngine, name: str) -> None:
    error = await refused(call(await serve(closed_played.handlers), name, b""))
    assert isinstance(error, LoadingError)
    assert error.retry_delay_s


@pytest.mark.parametrize("name", COUNTED)
async def test_a_key_is_asked_for_before_any_message(serve, name: str) -> None:
    metrics, keys = Metrics(), KeyStore({"alice": api_keys.entry_of("key")})
    handlers = TranslationHandlers(Gate(), Settings(), metrics, KeyHolders(metrics, lambda: keys))
    channel = await serve(handlers)
    for metadata in ((), (("x-goog-api-key", "wrong"),)):
        silent = channel.stream_unary(SERVICE + name)(timeout=PATIENCE_S, metadata=metadata)
        assert isinstance(await refused(silent), UnauthenticatedError)
    assert metrics.total("requests_total", method=COUNTED[name], code="UNAUTHENTICATED", protocol="google") == 2
    let_in = await refused(call(channel, name, b"", metadata=(("x-goog-api-key", "key"),)))
    assert isinstance(let_in, LoadingError)


@pytest.mark.parametrize("name", ["BatchTranslateText", "CreateGlossary", "RomanizeText"])
async def test_other_methods_are_not_implemented_and_no_label(serve, played: PlayedEngine, name: str) -> None:
    channel = await serve(played.handlers)
    silent = channel.stream_unary(SERVICE + name)(timeout=PATIENCE_S)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await silent
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert caught.value.details().startswith("not on this server: it")
    assert played.metrics.total("requests_total") == 0


async def test_a_glossary_for_other_languages_is_named_by_its_field(serve, played: PlayedEngine, tmp_path) -> None:
    (tmp_path / "terms.de-en.csv").write_text("Haus,house\n")
    glossaries, log = StoredGlossaries(str(tmp_path)), AccessLog(played.metrics, tracer=played.records)
    glossaries.refresh()
    handlers = TranslationHandlers(played.gate, Settings(), played.metrics, access_log=log, glossaries=glossaries)
    named = {"glossary": "projects/p/locations/l/glossaries/terms.de-en"}
    error = await refused(translate(await serve(handlers), glossary_config=named))
    said = "must be for en to de, 'terms.de-en' is for de to en"
    assert error.message == f"glossary_config.glossary: {said}"
    assert error.violations == [("glossary_config.glossary", said)]
    [record] = played.records
    assert error.request_id == record.request_id
