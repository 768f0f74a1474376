import asyncio
import inspect
import math
import pydoc
import socket
import threading
import time
from collections import defaultdict
from contextlib import aclosing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.server_process import free_ports
from dragoman import (
    AsyncClient,
    Client,
    ConcurrencyLimitedError,
    DeadlineExceededError,
    DetectedLanguage,
    DrainingError,
    InternalError,
    InvalidRequestError,
    LoadingError,
    Model,
    Options,
    OverloadedError,
    QueueFullError,
    RateLimitedError,
    RequestCancelledError,
    Score,
    ServerUnavailableError,
    TextFailedError,
    TokenScore,
    Translation,
    TranslationDelta,
    UnrecognizedError,
)
from dragoman.v1 import translation_pb2 as pb
from tests.unit.dragoman.conftest import EchoServicer

pytestmark = pytest.mark.usefixtures("short_pauses")
both = pytest.mark.parametrize("kind", [Client, AsyncClient])
texts_lists = st.lists(st.text(st.characters(codec="utf-8"), max_size=30), max_size=5)


def call(kind: type, address: str, method: str, *arguments: Any, settings: Any = None, **options: Any) -> Any:
    """Makes one call with a client of either kind, and collects a stream."""
    if kind is Client:
        with Client(address, **(settings or {})) as client:
            answer = getattr(client, method)(*arguments, **options)
            return list(answer) if method == "stream" else answer
    return asyncio.run(_call_async(address, method, arguments, settings or {}, options))


async def _call_async(address: str, method: str, arguments: Any, settings: Any, options: Any) -> Any:
    async with AsyncClient(address, **settings) as client:
        answer = getattr(client, method)(*arguments, **options)
        return [piece async for piece in answer] if method == "stream" else await answer


@both
def test_translates_texts_in_order(kind: type, echo) -> None:
    answer = call(kind, echo.address, "translate", ["ab", "", "c"], model="en-de")
    assert answer == [
        Translation("ab", "en-de", 2, 3, "EOS", 1),
        Translation("", "en-de", 0, 1, "EOS", 1),
        Translation("c", "en-de", 1, 2, "EOS", 1),
    ]


@both
def test_one_text_gives_one_translation_and_several_a_list(kind: type, echo) -> None:
    translation = call(kind, echo.address, "translate", "Hello")
    assert translation == Translation("Hello", "en-de", 5, 6, "EOS", 1)
    assert call(kind, echo.address, "translate", ["Hello"]) == [translation]
    assert call(kind, echo.address, "translate", ("Hello", "Hello")) == [translation] * 2
    assert [list(request.contents) for request in echo.servicer.requests] == [["Hello"]] * 2 + [["Hello"] * 2]


@both
@pytest.mark.parametrize("method", ["translate", "stream"])
def test_every_argument_reaches_its_field(kind: type, method: str, echo) -> None:
    options = {
        "source_language": "en",
        "target_language": "de",
        "model": "en-de",
        "max_target_tokens": 7,
        "mean_log_probability": True,
        "mime_type": "text/plain",
        "request_id": "mine",
        "priority": "bulk",
        "all_or_nothing": False,
    }
    call(kind, echo.address, method, ["a"], **options)
    call(kind, echo.address, method, ["a"])
    given_all, given_none = echo.servicer.requests
    assert given_all.source_language_code == "en"
    assert given_all.target_language_code == "de"
    assert given_all.model == "en-de"
    assert given_all.options.max_target_tokens == 7
    assert given_all.options.mean_log_probability
    assert (given_all.mime_type, given_all.request_id) == ("text/plain", "mine")
    assert given_all.priority == pb.PRIORITY_BULK
    assert not given_all.all_or_nothing
    assert given_none.all_or_nothing
    assert (given_none.request_id, given_none.priority) == ("", pb.PRIORITY_UNSPECIFIED)
    assert not given_none.options.HasField("max_target_tokens")
    assert not given_none.options.mean_log_probability
    assert (given_none.model, given_none.source_language_code, given_none.mime_type) == ("", "", "")


@both
def test_streams_piece_by_piece(kind: type, echo) -> None:
    assert call(kind, echo.address, "stream", ["ab", "c"]) == [
        TranslationDelta(0, "a", None),
        TranslationDelta(1, "c", None),
        TranslationDelta(0, "b", None),
        TranslationDelta(0, "", Translation("ab", "en-de", 2, 3, "EOS", 1)),
        TranslationDelta(1, "", Translation("c", "en-de", 1, 2, "EOS", 1)),
    ]


@both
@given(texts=texts_lists)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_arrives_as_sent_and_streamed_equals_unary(kind: type, texts: list[str], echo) -> None:
    unary = call(kind, echo.address, "translate", texts)
    assert [translation.text for translation in unary] == texts
    joined: dict[int, str] = defaultdict(str)
    results: dict[int, Translation | None] = {}
    for piece in call(kind, echo.address, "stream", texts):
        joined[piece.content_index] += piece.text
        results[piece.content_index] = piece.result
    assert [joined[index] for index in range(len(texts))] == texts
    assert [results[index] for index in range(len(texts))] == unary


@both
def test_lists_models(kind: type, echo) -> None:
    expected = Model("en-de", "en", "de", "int8", 128, 256, 8000, "ab" * 32, ("en",), ("de",), "")
    assert call(kind, echo.address, "list_models") == [expected]


@both
def test_lists_the_models_of_all_pages(kind: type, echo) -> None:
    echo.servicer.models = ["de-en", "en-de", "en-fr"]
    assert [model.name for model in call(kind, echo.address, "list_models")] == ["de-en", "en-de", "en-fr"]


@both
def test_scores_a_translation_or_several_in_order(kind: type, echo) -> None:
    one = Score("en-de", -2.0, -0.5, (TokenScore("J", -1.0), TokenScore("a", -1.0)), 3, 2)
    assert call(kind, echo.address, "score", "yes", "Ja", model="en-de") == one
    options = {"source_language": "en", "target_language": "de", "request_id": "mine", "priority": "bulk"}
    scores = call(kind, echo.address, "score", ["yes", "no"], ("Ja", "poison"), all_or_nothing=False, **options)
    assert scores[0] == one
    assert isinstance(scores[1].error, TextFailedError)
    first, second = echo.servicer.requests
    assert first == pb.ScoreTextRequest(
        pairs=[pb.TextPair(source_text="yes", target_text="Ja")], model="en-de", all_or_nothing=True
    )
    assert (second.source_language_code, second.target_language_code, second.request_id) == ("en", "de", "mine")
    assert (second.priority, second.all_or_nothing) == (pb.PRIORITY_BULK, False)


@both
def test_scores_need_a_translation_for_each_text(kind: type, echo) -> None:
    with pytest.raises(ValueError, match="there must be a translation for each text: 2 texts, 1 translations"):
        call(kind, echo.address, "score", ["a", "b"], ["c"], model="en-de")
    with pytest.raises(TypeError, match="translations: must be str as texts is, is list"):
        call(kind, echo.address, "score", "a", ["c"], model="en-de")
    with pytest.raises(TypeError, match="translations: must be a sequence of str as texts is, is str"):
        call(kind, echo.address, "score", ["a"], "c", model="en-de")
    with pytest.raises(TypeError, match=r"translations\[1\]: must be str, is int"):
        call(kind, echo.address, "score", ["a", "b"], ["c", 3], model="en-de")
    with pytest.raises(TypeError, match="model: must be str, is int"):
        call(kind, echo.address, "score", "a", "b", model=3)
    with pytest.raises(ValueError, match="priority must be"):
        call(kind, echo.address, "score", "a", "b", priority="low")
    assert echo.servicer.requests == []


@both
def test_detects_the_languages_of_a_text_or_several(kind: type, echo) -> None:
    assert call(kind, echo.address, "detect", "de") == [DetectedLanguage("de", 0.75)]
    options = {"mime_type": "text/html", "request_id": "mine"}
    assert call(kind, echo.address, "detect", ["fr", ""], **options) == [[("fr", 0.75)], []]
    first, second = echo.servicer.requests
    assert first == pb.DetectLanguageRequest(contents=["de"])
    assert second == pb.DetectLanguageRequest(contents=["fr", ""], **options)
    with pytest.raises(TypeError, match=r"texts\[1\]: must be str, is int"):
        call(kind, echo.address, "detect", ["a", 3])
    with pytest.raises(TypeError, match="mime_type: must be str, is int"):
        call(kind, echo.address, "detect", "a", mime_type=3)


@both
@pytest.mark.parametrize(
    ("method", "arguments"),
    [("translate", ["a"]), ("stream", ["a"]), ("score", ["a", "b"]), ("detect", ["a"]), ("list_models", [])],
)
class TestEveryMethod:
    def test_raises_the_error_of_the_server(self, kind, method, arguments, echo) -> None:
        echo.servicer.errors = [InvalidRequestError("bad", violations=[("contents", "empty")])]
        with pytest.raises(InvalidRequestError, match=r"^bad$") as caught:
            call(kind, echo.address, method, *arguments)
        assert caught.value.violations == [("contents", "empty")]

    def test_sends_the_metadata(self, kind, method, arguments, echo) -> None:
        call(kind, echo.address, method, *arguments, settings={"metadata": {"authorization": "Bearer x"}})
        assert echo.servicer.metadata[0]["authorization"] == "Bearer x"

    def test_tries_again_while_the_server_is_unavailable(self, kind, method, arguments, echo) -> None:
        echo.servicer.errors = [LoadingError("loading", retry_delay_s=0.1), DrainingError("draining")]
        assert call(kind, echo.address, method, *arguments)
        assert len(echo.servicer.metadata) == 3

    def test_tries_as_often_as_it_is_told(self, kind, method, arguments, echo) -> None:
        for retries in (0, 1, 2):
            echo.servicer.metadata.clear()
            echo.servicer.errors = [DrainingError("draining") for _ in range(6)]
            with pytest.raises(DrainingError):
                call(kind, echo.address, method, *arguments, settings={"retries": retries})
            assert len(echo.servicer.metadata) == 1 + retries

    @pytest.mark.parametrize("error", [RateLimitedError, ConcurrencyLimitedError, QueueFullError, OverloadedError])
    def test_waits_for_a_busy_server_where_it_is_asked_to(self, kind, method, arguments, error, echo) -> None:
        echo.servicer.errors = [error("busy", retry_delay_s=0.02), error("busy", retry_delay_s=0.1)]
        began_s = time.monotonic()
        assert call(kind, echo.address, method, *arguments, settings={"wait_when_busy": True})
        assert len(echo.servicer.metadata) == 3
        assert time.monotonic() - began_s >= 0.12  # never sooner than the server asks

    def test_waits_for_no_busy_server_beyond_the_deadline(self, kind, method, arguments, echo) -> None:
        echo.servicer.errors = [QueueFullError("full", retry_delay_s=1e6)]
        with pytest.raises(QueueFullError):
            call(kind, echo.address, method, *arguments, settings={"wait_when_busy": True})
        assert len(echo.servicer.metadata) == 1

    def test_a_timeout_of_nothing_is_none_at_all(self, kind, method, arguments, echo) -> None:
        with pytest.raises(DeadlineExceededError, match="before the server was called"):
            call(kind, echo.address, method, *arguments, settings={"timeout_s": 5.0}, timeout_s=0)
        assert echo.servicer.metadata == []

    def test_leaves_a_full_queue_alone(self, kind, method, arguments, echo) -> None:
        echo.servicer.errors = [QueueFullError("full", retry_delay_s=2.0)]
        with pytest.raises(QueueFullError) as caught:
            call(kind, echo.address, method, *arguments)
        assert caught.value.retry_delay_s == 2.0
        assert len(echo.servicer.metadata) == 1

    def test_the_deadline_ends_the_call(self, kind, method, arguments, echo) -> None:
        echo.servicer.blocks = True
        with pytest.raises(DeadlineExceededError):
            call(kind, echo.address, method, *arguments, timeout_s=0.05)
        with pytest.raises(DeadlineExceededError):
            call(kind, echo.address, method, *arguments, settings={"timeout_s": 0.05})


@both
def test_an_error_of_a_text_is_part_of_its_translation(kind: type, echo) -> None:
    good, bad = call(kind, echo.address, "translate", ["a", "poison"], all_or_nothing=False)
    assert good.error is None
    assert isinstance(bad.error, TextFailedError)
    assert (bad.text, bad.error.message, bad.error.code) == ("", "poisonous", grpc.StatusCode.INTERNAL)


@both
def test_an_api_key_is_sent_as_authorization(kind: type, echo) -> None:
    call(kind, echo.address, "translate", "a", settings={"api_key": "key", "metadata": {"x": "y"}})
    assert echo.servicer.metadata[0]["authorization"] == "Bearer key"
    assert echo.servicer.metadata[0]["x"] == "y"


@both
def test_address_and_key_come_from_the_environment(kind: type, echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SERVER", echo.address)
    monkeypatch.setenv("DRAGOMAN_API_KEY", "of the environment")
    monkeypatch.setenv("DRAGOMAN_ADDRESS", "127.0.0.1:1")  # where a server listens: not for clients
    call(kind, None, "translate", "a")
    call(kind, None, "translate", "a", settings={"api_key": "given"})
    call(kind, None, "translate", "a", settings={"api_key": ""})
    monkeypatch.setenv("DRAGOMAN_SERVER", "127.0.0.1:1")
    call(kind, echo.address, "translate", "a")
    keys = [metadata.get("authorization") for metadata in echo.servicer.metadata]
    assert keys == ["Bearer of the environment", "Bearer given", None, "Bearer of the environment"]


@both
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"retries": -1}, "retries must be 0 or more, is -1"),
        ({"api_key": "a\nb"}, "must be printable ASCII"),
        ({"timeout_s": -1}, "timeout_s must be 0 or more, is -1"),
        ({"metadata": {"X-Y": "z"}}, "metadata: a key must be of a-z, 0-9, -, _ and ., is 'X-Y'"),
    ],
)
def test_settings_that_cannot_be_are_named(kind: type, settings: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        kind("127.0.0.1:1", **settings)


@both
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"retries": 1.5}, "retries: must be int, is float"),
        ({"wait_when_busy": "yes"}, "wait_when_busy: must be bool, is str"),
        ({"metadata": [("a", "b")]}, "metadata: must be a mapping of str to str, is list"),
        ({"credentials": "x"}, "credentials: must be grpc.ChannelCredentials, is str"),
    ],
)
def test_settings_of_a_wrong_type_are_named(kind: type, settings: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        kind("127.0.0.1:1", **settings)


def test_an_async_client_needs_an_event_loop() -> None:
    with pytest.raises(RuntimeError, match="AsyncClient: make it in the coroutine that uses it"):
        AsyncClient("127.0.0.1:1")


@both
def test_an_address_that_is_a_url_is_named(kind: type) -> None:
    with pytest.raises(ValueError, match="must be host:port of gRPC, not a URL, is 'http://there:1'"):
        kind("http://there:1")


@both
def test_waits_until_the_server_is_ready(kind: type, echo) -> None:
    echo.health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    with pytest.raises(DeadlineExceededError, match=f"no server at {echo.address} was ready within 0.5 s"):
        call(kind, echo.address, "wait_until_ready", timeout_s=0.5)
    threading.Timer(0.5, echo.health.set, ("", health_pb2.HealthCheckResponse.SERVING)).start()
    assert call(kind, echo.address, "wait_until_ready") is None


@both
def test_waits_for_a_server_that_is_not_there_yet(kind: type, start_echo) -> None:
    [port] = free_ports(1)
    starting = threading.Timer(0.5, start_echo, kwargs={"port": port})
    starting.start()
    try:
        call(kind, f"127.0.0.1:{port}", "wait_until_ready")
    finally:
        starting.join()


@both
def test_errors_are_those_of_python_too(kind: type, echo) -> None:
    echo.servicer.errors = [DrainingError("draining")]
    with pytest.raises(ConnectionError, match=r"^draining$"):
        call(kind, echo.address, "translate", "a", settings={"retries": 0})
    echo.servicer.blocks = True
    with pytest.raises(TimeoutError):
        call(kind, echo.address, "translate", "a", timeout_s=0.05)


@both
def test_gives_up_on_a_server_that_is_not_there(kind: type) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ServerUnavailableError, match=f"^no server answers at {address}$") as caught:
            call(kind, address, "translate", "a")
    assert caught.value.retryable
    assert caught.value.reason == "SERVER_UNAVAILABLE"


def test_a_failed_connection_of_another_client_counts_for_nothing(start_echo) -> None:
    [port] = free_ports(1)
    address = f"127.0.0.1:{port}"
    with Client(address, retries=0) as other:
        with pytest.raises(ServerUnavailableError):
            other.translate("a")
        start_echo(port=port)
        assert call(Client, address, "translate", "a", settings={"retries": 0}).text == "a"


@both
def test_spreads_its_calls_over_all_addresses(kind: type, start_echo) -> None:
    servers = [start_echo(), start_echo()]
    address = "ipv4:" + ",".join(server.address for server in servers)

    async def translate_until_both_were_called() -> None:
        async with AsyncClient(address) as client:
            while not all(server.servicer.requests for server in servers):
                await client.translate("a")

    if kind is AsyncClient:
        asyncio.run(asyncio.wait_for(translate_until_both_were_called(), timeout=30))
        return
    give_up_s = time.monotonic() + 30
    with Client(address) as client:
        while not all(server.servicer.requests for server in servers):
            assert time.monotonic() < give_up_s, "one of the servers was never called"
            client.translate("a")


@both
def test_speaks_to_a_server_with_credentials(kind: type, start_echo) -> None:
    server = start_echo(grpc.local_server_credentials())
    settings = {"credentials": grpc.local_channel_credentials()}
    assert call(kind, server.address, "translate", "a", settings=settings).text == "a"


@both
def test_takes_an_answer_of_many_megabytes(kind: type, echo) -> None:
    texts = ["ä" * 500_000] * 5  # 5 MB; gRPC takes 4 MiB by itself
    assert [t.text for t in call(kind, echo.address, "translate", texts, timeout_s=60)] == texts


def test_closing_a_stream_cancels_its_call(echo) -> None:
    with Client(echo.address) as client:
        pieces = client.stream("a" * 100_000)
        assert next(pieces).text == "a"
        pieces.close()
        assert echo.servicer.call_ended.wait(30)
    assert len(echo.servicer.requests) == 1


async def test_closing_an_async_stream_cancels_its_call(echo) -> None:
    async with AsyncClient(echo.address) as client:
        async with aclosing(client.stream("a" * 100_000)) as pieces:
            assert (await anext(pieces)).text == "a"
        assert await asyncio.to_thread(echo.servicer.call_ended.wait, 30)


async def test_cancelling_a_task_cancels_its_call(echo) -> None:
    echo.servicer.blocks = True
    async with AsyncClient(echo.address) as client:
        task = asyncio.create_task(client.translate("a"))
        while not echo.servicer.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(echo.servicer.call_ended.wait, 30)


async def test_many_calls_share_one_client(echo) -> None:
    async with AsyncClient(echo.address) as client:
        answers = await asyncio.gather(*(client.translate(str(number)) for number in range(50)))
    assert [translation.text for translation in answers] == [str(number) for number in range(50)]


@both
@pytest.mark.parametrize("method", ["translate", "stream"])
def test_what_no_message_can_hold_is_not_sent(kind: type, method: str, echo) -> None:
    for texts, place in (("\ud800", 0), (["a", "\ud800"], 1)):
        with pytest.raises(ValueError, match=rf"^texts\[{place}\]: half a surrogate pair is no character$"):
            call(kind, echo.address, method, texts)
    with pytest.raises(ValueError, match="model: half a surrogate pair is no character"):
        call(kind, echo.address, method, "a", model="\ud800")
    for limit in (-1, 2**32):
        with pytest.raises(ValueError, match=f"max_target_tokens must be 0 to the limit of the model, is {limit}"):
            call(kind, echo.address, method, "a", max_target_tokens=limit)
        with pytest.raises(ValueError, match=f"beam_size must be 0 to 16, is {limit}"):
            call(kind, echo.address, method, "a", beam_size=limit)
    with pytest.raises(ValueError, match='must be "interactive" or "bulk"'):
        call(kind, echo.address, method, "a", priority="urgent")
    assert not echo.servicer.requests


@both
@pytest.mark.parametrize("method", ["translate", "stream"])
@pytest.mark.parametrize(
    ("texts", "options", "said"),
    [
        (["ok", 5], {}, r"texts\[1\]: must be str, is int"),
        ([None], {}, r"texts\[0\]: must be str, is NoneType"),
        (b"ok", {}, "texts: must be str or a sequence of str, is bytes"),
        ((text for text in "ab"), {}, "texts: .* is generator; translate_many takes any iterable of str$"),
        (5, {}, "texts: must be str or a sequence of str, is int"),
        ("a", {"model": 5}, "model: must be str, is int"),
        ("a", {"max_target_tokens": "5"}, "max_target_tokens: must be int, is str"),
        ("a", {"mean_log_probability": 1}, "mean_log_probability: must be bool, is int"),
        ("a", {"source_langauge": "de"}, "'source_langauge'; did you mean source_language"),
        ("a", {"timeout": 5}, "'timeout'; did you mean timeout_s"),
        ("a", {"xyz": 5}, "unexpected keyword argument 'xyz'$"),
    ],
)
def test_what_is_of_a_wrong_type_or_name_is_named(
    kind: type, method: str, texts: Any, options: Any, said: str, echo
) -> None:
    with pytest.raises(TypeError, match=said):
        call(kind, echo.address, method, texts, **options)
    assert not echo.servicer.requests


@both
@pytest.mark.parametrize(
    ("address", "settings", "said"),
    [
        (5, {}, "address: must be str, is int"),
        ("there:1", {"api_key": 5}, "api_key: must be str, is int"),
        ("there:1", {"timeout_s": "x"}, "timeout_s: must be float, is str"),
    ],
)
def test_a_setting_of_a_wrong_type_is_named(kind: type, address: Any, settings: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call(kind, address, "translate", "a", settings=settings)


@both
def test_a_timeout_that_cannot_be_is_named(kind: type, echo) -> None:
    for method in ("translate", "wait_until_ready"):
        arguments = ["a"] if method == "translate" else []
        with pytest.raises(ValueError, match="timeout_s must be 0 or more, is -1"):
            call(kind, echo.address, method, *arguments, timeout_s=-1)


@pytest.mark.parametrize("method", ["translate", "stream", "translate_many"])
async def test_a_closed_client_says_so(method: str, echo) -> None:
    client, other = Client(echo.address), AsyncClient(echo.address)
    client.close()
    await other.close()
    with pytest.raises(ValueError, match="the client is closed"):
        list(getattr(client, method)("a"))
    answer = getattr(other, method)("a")
    with pytest.raises(ValueError, match="the client is closed"):
        await (answer if method == "translate" else anext(answer))


@both
@pytest.mark.parametrize("method", ["translate", "stream", "translate_many"])
def test_help_shows_every_option_with_its_default(kind: type, method: str) -> None:
    shown = inspect.signature(getattr(kind, method))
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in shown.parameters.values())
    assert Options.__annotations__.keys() <= shown.parameters.keys()
    assert shown.parameters["mean_log_probability"].default is False
    assert "source_language: 'str' = ''" in pydoc.render_doc(getattr(kind, method), renderer=pydoc.plaintext)


def test_a_broken_server_is_unrecognized(echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echo.servicer, "translated", None)
    with Client(echo.address) as client, pytest.raises(UnrecognizedError) as caught:
        client.translate("a")
    assert caught.value.code is grpc.StatusCode.UNKNOWN


def test_a_call_that_a_stopping_server_cancels_is_tried_again_and_then_an_error_of_its_own(echo) -> None:
    echo.servicer.cancels = 1
    assert call(Client, echo.address, "translate", "a")
    echo.servicer.cancels = 2
    with pytest.raises(RequestCancelledError):
        call(Client, echo.address, "translate", "a", settings={"retries": 1})


@both
def test_a_server_that_was_there_is_waited_for(kind: type, echo) -> None:
    async def call_twice() -> object:
        async with AsyncClient(echo.address, retries=1) as client:
            await client.translate("a")
            echo.servicer.errors = errors
            return await client.translate("b")

    errors = [ServerUnavailableError("away", retry_delay_s=0.0), DrainingError("draining"), DrainingError("draining")]
    if kind is AsyncClient:
        assert asyncio.run(call_twice())
        return
    with Client(echo.address, retries=1) as client:
        client.translate("a")
        echo.servicer.errors = errors
        assert client.translate("b")


@both
def test_a_server_that_was_ready_is_waited_for(kind: type, echo) -> None:
    async def call_when_ready() -> object:
        async with AsyncClient(echo.address, retries=1) as client:
            await client.wait_until_ready()
            return await client.translate("a")

    echo.servicer.errors = [DrainingError("draining") for _ in range(3)]
    if kind is AsyncClient:
        assert asyncio.run(call_when_ready())
        return
    with Client(echo.address, retries=1) as client:
        client.wait_until_ready()
        assert client.translate("a")


@pytest.mark.parametrize("method", ["translate", "stream", "translate_many"])
def test_a_call_that_closing_the_client_cancels_is_not_made_again(method: str, echo) -> None:
    echo.servicer.blocks = True
    client = Client(echo.address)
    closing = threading.Timer(0.2, client.close)
    closing.start()
    with pytest.raises(RequestCancelledError, match="the client was closed"):
        list(getattr(client, method)("a"))
    closing.join()


@pytest.mark.parametrize("method", ["translate", "stream", "translate_many"])
async def test_an_async_call_that_closing_the_client_cancels_has_an_error(method: str, echo) -> None:
    echo.servicer.blocks = True
    client = AsyncClient(echo.address)
    answer = getattr(client, method)("a")
    calling = asyncio.create_task(answer if method == "translate" else anext(answer))
    while not echo.servicer.metadata:
        await asyncio.sleep(0.01)
    await client.close()
    with pytest.raises(RequestCancelledError, match="the client was closed"):
        await calling


@both
def test_a_timeout_without_end_is_a_long_one(kind: type, echo) -> None:
    for timeout_s in (math.inf, 7.6e9):
        assert call(kind, echo.address, "translate", "a", timeout_s=timeout_s)


@both
@pytest.mark.parametrize(
    ("method", "arguments", "served", "empty"),
    [
        ("translate", [["a", "b"]], "TranslateText", pb.TranslateTextResponse()),
        ("translate", ["a"], "TranslateText", pb.TranslateTextResponse()),
        ("score", ["a", "b"], "ScoreText", pb.ScoreTextResponse()),
        ("detect", ["a"], "DetectLanguage", pb.DetectLanguageResponse()),
    ],
)
def test_a_server_that_leaves_texts_out_has_failed(
    kind, method, arguments, served, empty, start_echo, monkeypatch
) -> None:
    monkeypatch.setattr(EchoServicer, served, lambda self, request, context: empty)
    with pytest.raises(InternalError, match=r"^the server answered 0 of [12] texts$"):
        call(kind, start_echo().address, method, *arguments)


@both
def test_a_port_of_http_is_named(kind: type) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            with pytest.raises(ServerUnavailableError, match="does not speak gRPC: is it the HTTP port of a server"):
                call(kind, f"127.0.0.1:{server.server_port}", "translate", "a", settings={"retries": 0})
        finally:
            server.shutdown()
