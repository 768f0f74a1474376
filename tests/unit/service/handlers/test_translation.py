"""The handlers as any transport calls them: with messages and a context, and no gRPC."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from dragoman.errors import (
    ConcurrencyLimitedError,
    DeadlineExceededError,
    DragomanError,
    DrainingError,
    InternalError,
    InvalidRequestError,
    LoadingError,
    RequestCancelledError,
    UnauthenticatedError,
    UnknownModelError,
)
from dragoman.v1 import translation_pb2 as pb
from plugins.access import api_keys
from plugins.access.api_keys import KeyStore
from plugins.access.callers import KeyHolders
from plugins.batch.method import batch
from service.handlers.context import CallContext
from service.handlers.delivery import deliver
from service.handlers.gate import Gate
from service.handlers.translation import TranslationHandlers
from service.registry.catalog import Catalog
from service.security.access import Caller
from service.settings import Settings
from service.telemetry.access_log import AccessLog
from service.telemetry.metrics import Metrics
from tests.unit.service.played_engine import PlayedEngine, until


def context_of(**fields) -> CallContext:
    return CallContext(Caller("alice"), **fields)


def request_of(*texts: str, **fields) -> pb.TranslateTextRequest:
    return pb.TranslateTextRequest(contents=texts, model="en-de", **fields)


async def config_and(*texts: str, **config) -> AsyncIterator[pb.BatchTranslateTextRequest]:
    yield pb.BatchTranslateTextRequest(config=pb.BatchTranslateTextConfig(model="en-de", **config))
    for text in texts:
        yield pb.BatchTranslateTextRequest(contents=[text])


async def play(played: PlayedEngine) -> None:
    while True:
        for segment in await played.taken(1):
            assert segment.client == "alice"
            played.exhaust(segment)
        await asyncio.sleep(0)


@pytest.fixture
async def engine(played: PlayedEngine) -> AsyncIterator[PlayedEngine]:
    """One that plays by itself."""
    playing = asyncio.create_task(play(played))
    yield played
    playing.cancel()


async def test_translate_returns_one_message(engine) -> None:
    answer = await engine.handlers.translate(request_of("tom. Good tom.", " ", request_id="mine"), context_of())
    assert [translation.translated_text for translation in answer.translations] == ["tom. Good tom.", " "]
    assert answer.request_id == "mine"
    [record] = engine.records
    assert (record.method, record.caller, record.code.name, record.texts) == ("TranslateText", "alice", "OK", 2)


async def test_stream_yields_text_as_it_grows_and_then_the_whole(engine) -> None:
    messages = [message async for message in engine.handlers.stream(request_of("tom. Good tom."), context_of())]
    *deltas, last = messages
    assert "".join(message.text_delta for message in deltas) == "tom. Good tom."
    assert last.result.translated_text == "tom. Good tom."
    assert engine.records[0].code.name == "OK"


async def test_batch_takes_messages_and_yields_answers(engine) -> None:
    accepted = asyncio.Event()

    async def accept() -> None:
        accepted.set()

    texts = ["tom", "Good tom", " "]
    requests = config_and(*texts, in_order=True, request_id="mine")
    answers = [message async for message in batch(engine.handlers, requests, context_of(accept=accept))]
    assert accepted.is_set()
    translations = [answer for message in answers for answer in message.translations]
    assert [(each.content_index, each.translation.translated_text) for each in translations] == [*enumerate(texts)]
    assert answers[0].request_id == "mine"
    assert engine.records[0].texts == 3


async def test_list_models_returns_them(played) -> None:
    answer = await played.handlers.list_models(pb.ListModelsRequest(), context_of())
    assert [model.name for model in answer.models] == ["en-de"]


@pytest.mark.parametrize("method", ["translate", "stream", "batch"])
async def test_an_error_names_its_request_and_nobody_elses(played, method) -> None:
    shared = DrainingError("stopped")
    ended: list[DragomanError] = []

    async def call(request_id: str) -> None:
        try:
            if method == "translate":
                await played.handlers.translate(request_of("tom", request_id=request_id), context_of())
            elif method == "stream":
                async for _ in played.handlers.stream(request_of("tom", request_id=request_id), context_of()):
                    pass
            else:
                async for _ in batch(played.handlers, config_and("tom", request_id=request_id), context_of()):
                    pass
        except DragomanError as error:
            ended.append(error)

    calls = [asyncio.create_task(call(request_id)) for request_id in ("first", "second")]
    await until(lambda: len(played.mailbox.waiting) == 2)
    played.gate.abandon(shared)
    await asyncio.gather(*calls)
    assert sorted(error.request_id for error in ended) == ["first", "second"]
    assert {(type(error), error.message) for error in ended} == {(DrainingError, "stopped")}
    assert shared.request_id == ""
    assert {record.reason for record in played.records} == {"DRAINING"}


@pytest.mark.parametrize(
    ("model", "opened", "expected"),
    [("xx", True, UnknownModelError), ("en-de", False, LoadingError), ("xx", False, LoadingError)],
)
async def test_a_refusal_is_raised_counted_and_written_down(closed_played, manifest, request, model, opened, expected):
    played = request.getfixturevalue("played") if opened else closed_played
    with pytest.raises(expected):
        await played.handlers.translate(pb.TranslateTextRequest(contents=["tom"], model=model), context_of())
    assert played.count("rejected_total", expected.reason) == 1
    assert played.count("requests_total", "TranslateText", expected.code.name) == 1
    assert played.records[0].reason == expected.reason
    assert not played.gate.running


async def test_a_call_without_a_request_is_refused_for_what_refuses_all_calls_first(closed_played, request) -> None:
    error = InvalidRequestError("broken")
    with pytest.raises(LoadingError):
        closed_played.handlers.refuse("TranslateText", context_of(), error)
    played = request.getfixturevalue("played")
    with pytest.raises(InvalidRequestError, match="broken") as caught:
        played.handlers.refuse("TranslateText", context_of(), error)
    assert caught.value.request_id
    assert [record.reason for record in played.records] == ["LOADING", "INVALID_REQUEST"]


async def test_a_deadline_ends_a_call_and_withdraws_its_segments(played) -> None:
    with pytest.raises(DeadlineExceededError, match="not complete within"):
        await played.handlers.translate(request_of("tom"), context_of(deadline_s=time.monotonic() + 0.05))
    assert played.mailbox.unfinished == 0


@pytest.mark.parametrize("remaining_s", [-0.001, 0.0, 0.0001])
async def test_a_deadline_that_had_passed_is_told_in_words_and_not_as_zero_seconds(played, remaining_s) -> None:
    """Of a call that waited in the transport for longer than its caller did."""
    context = context_of(deadline_s=time.monotonic() + remaining_s)
    with pytest.raises(DeadlineExceededError, match=r"^the deadline of the call had passed before its work began$"):
        await played.handlers.translate(request_of("tom"), context)


@pytest.mark.parametrize(("given_s", "expected"), [(None, RequestCancelledError), (0.0, DeadlineExceededError)])
async def test_a_cancelled_task_is_a_client_that_left_or_gave_up_at_its_deadline(played, given_s, expected) -> None:
    context = context_of() if given_s is None else context_of(deadline_s=time.monotonic() + 0.04)
    call = asyncio.create_task(played.handlers.translate(request_of("tom"), context))
    await until(lambda: len(played.mailbox.waiting) == 1)
    call.cancel()
    with pytest.raises((asyncio.CancelledError, DeadlineExceededError)):
        await call
    assert played.mailbox.unfinished == 0
    assert played.records[0].code is expected.code


async def test_a_transport_that_reads_no_further_is_a_client_that_left(played) -> None:
    async with aclosing(played.handlers.stream(request_of(" ", "tom"), context_of())) as messages:
        await anext(messages)
        assert played.mailbox.unfinished == 1
    assert played.mailbox.unfinished == 0
    assert played.records[0].code is RequestCancelledError.code


async def never(_: object) -> None:
    await asyncio.Event().wait()


async def test_the_deadline_and_the_end_of_the_server_end_a_call_that_is_sending(played) -> None:
    texts = request_of(" ", "tom")
    with pytest.raises(DeadlineExceededError):
        await deliver(played.handlers.stream(texts, context_of(deadline_s=time.monotonic() + 0.05)), never)
    abandoned = asyncio.create_task(deliver(batch(played.handlers, config_and(" ", "tom"), context_of()), never))
    await until(lambda: len(played.mailbox.waiting) == 1)
    played.gate.abandon(InternalError("failed"))
    with pytest.raises(InternalError, match="failed"):
        await abandoned
    assert played.mailbox.unfinished == 0
    assert [record.reason for record in played.records] == ["DEADLINE_EXCEEDED", "INTERNAL"]


async def test_a_message_that_cannot_be_sent_is_a_fault_of_ours(played) -> None:
    async def fail(_: object) -> None:
        raise OSError("a text")

    with pytest.raises(InternalError, match="its log says more"):
        await deliver(played.handlers.stream(request_of(" ", "tom"), context_of()), fail)
    assert played.mailbox.unfinished == 0


async def test_closing_answers_what_has_come_and_says_how_far_that_is(engine) -> None:
    more = asyncio.Event()

    async def requests() -> AsyncIterator[pb.BatchTranslateTextRequest]:
        async for message in config_and("tom"):
            yield message
        await more.wait()

    messages = batch(engine.handlers, requests(), context_of())
    first = await anext(messages)
    assert first.translations[0].translation.translated_text == "tom"
    engine.gate.close()
    with pytest.raises(DrainingError) as caught:
        await anext(messages)
    assert caught.value.metadata == {"answered_texts": "1"}


async def test_a_bad_message_of_a_batch_ends_it(engine) -> None:
    async def requests() -> AsyncIterator[pb.BatchTranslateTextRequest]:
        async for message in config_and():
            yield message
        raise InvalidRequestError("broken")

    with pytest.raises(InvalidRequestError, match="broken"):
        await anext(batch(engine.handlers, requests(), context_of()))


def with_keys(played: PlayedEngine, **limits) -> TranslationHandlers:
    ring = KeyStore({"bob": api_keys.entry_of("key", **limits)})
    callers = KeyHolders(played.metrics, lambda: ring)
    access_log = AccessLog(played.metrics, tracer=played.records)
    return TranslationHandlers(played.gate, Settings(), played.metrics, callers, access_log)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("ipv4:192.0.2.7:40000", "ipv4:192.0.2.7:40001", True),
        ("ipv4:192.0.2.7:40000", "ipv4:192.0.2.8:40000", False),
        ("ipv6:%5B::1%5D:40000", "ipv6:%5B::1%5D:40001", True),
        ("ipv6:%5B2001:db8::1%5D:40000", "ipv6:%5B2001:db8:1::1%5D:40000", False),
        # One host of IPv6 has a network of 64 bits to call from.
        ("ipv6:%5B2001:db8::1%5D:40000", "ipv6:%5B2001:db8::2%5D:40000", True),
        ("unix:", "unix:", True),
    ],
)
def test_without_keys_the_port_does_not_tell_callers_apart_but_the_host_does(first, second, same) -> None:
    handlers = TranslationHandlers(Gate(), Settings(), Metrics())
    assert (handlers.identify("TranslateText", first, []) == handlers.identify("TranslateText", second, [])) is same


def test_without_keys_a_key_is_ignored() -> None:
    handlers = TranslationHandlers(Gate(), Settings(), Metrics())
    caller = handlers.identify("TranslateText", "ipv4:1.2.3.4:5", [("x-api-key", "a")])
    assert caller.name == "ipv4:1.2.3.4"


def test_a_caller_is_known_by_its_headers(closed_played) -> None:
    handlers = with_keys(closed_played)
    caller = handlers.identify("TranslateText", "ipv4:192.0.2.7:1", [("x-api-key", "key")])
    assert caller.name == "bob"
    assert not closed_played.records
    with pytest.raises(UnauthenticatedError) as caught:
        handlers.identify("TranslateText", "ipv4:192.0.2.7:1", [("x-api-key", "wrong")])
    [record] = closed_played.records
    assert caught.value.request_id == record.request_id != ""
    assert (record.caller, record.reason) == ("ipv4:192.0.2.7", "UNAUTHENTICATED")
    assert closed_played.count("rejected_total", "UNAUTHENTICATED") == 1


async def test_the_limits_of_a_key_come_before_all_else(closed_played) -> None:
    handlers = with_keys(closed_played, concurrent_requests=1)
    caller = handlers.identify("BatchTranslateText", "unix:", [("x-api-key", "key")])
    with pytest.raises(LoadingError):
        await handlers.translate(request_of("tom"), CallContext(caller))

    async def silent() -> AsyncIterator[pb.BatchTranslateTextRequest]:
        await asyncio.Event().wait()
        yield pb.BatchTranslateTextRequest()

    closed_played.gate.open(Catalog([]))
    waiting = asyncio.create_task(anext(batch(handlers, silent(), CallContext(caller))))
    await until(lambda: closed_played.gate.running == 1)
    with pytest.raises(ConcurrencyLimitedError):
        handlers.refuse("TranslateText", CallContext(caller), InvalidRequestError("broken"))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
