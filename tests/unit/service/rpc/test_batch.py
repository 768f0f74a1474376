"""BatchTranslateText on a real gRPC server and mailbox; the tests themselves play the engine."""

import asyncio
import contextlib
from collections.abc import Sequence

import grpc.aio
import pytest

from dragoman.errors import (
    AnswerTooLargeError,
    DeadlineExceededError,
    DragomanError,
    DrainingError,
    InternalError,
    InvalidRequestError,
    TextFailedError,
    UnknownModelError,
    from_rpc_error,
    from_text_error,
)
from dragoman.v1 import translation_pb2 as pb
from service.decode import Decode, FinishReason
from service.options import Priority
from tests.unit.service.played_engine import PATIENCE_S, ServedEngine, until

with_settings = pytest.mark.parametrize("server_settings", [{"max_contents": 4}], indirect=True)
TOO_LARGE = "a" * 1_100_001


class Pipeline:
    """A caller of one stream."""

    def __init__(self, served: ServedEngine, timeout_s: float = PATIENCE_S) -> None:
        self.call = served.stub.BatchTranslateText(timeout=timeout_s)

    @classmethod
    async def begin(cls, served: ServedEngine, timeout_s: float = PATIENCE_S, **config) -> "Pipeline":
        pipeline = cls(served, timeout_s)
        await pipeline.write(config=pb.BatchTranslateTextConfig(model="en-de", **config))
        return pipeline

    async def write(self, *texts: str, **fields) -> None:
        await self.call.write(pb.BatchTranslateTextRequest(contents=texts, **fields))

    async def read(self) -> pb.BatchTranslateTextResponse:
        return await self.call.read()

    async def rest(self) -> list[pb.BatchTranslation]:
        answers: list[pb.BatchTranslation] = []
        while (message := await self.read()) is not grpc.aio.EOF:
            answers += message.translations
        return answers

    async def error(self) -> DragomanError:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.rest()
        return from_rpc_error(caught.value)


def texts_of(answers: Sequence[pb.BatchTranslation]) -> dict[int, str]:
    assert len({answer.content_index for answer in answers}) == len(answers)
    return {answer.content_index: answer.translation.translated_text for answer in answers}


async def test_texts_are_numbered_through_and_answered_as_they_finish(served) -> None:
    pipeline = await Pipeline.begin(served, request_id="mine")
    await pipeline.write("tom", "Good tom")
    await pipeline.write("station")
    segments = await served.taken(3)
    served.exhaust(segments[2])
    first = await pipeline.read()
    assert first.request_id == "mine"
    assert texts_of(first.translations) == {2: "station"}
    served.exhaust(segments[0])
    second = await pipeline.read()
    assert (second.request_id, texts_of(second.translations)) == ("", {0: "tom"})
    await pipeline.call.done_writing()
    served.exhaust(segments[1])
    assert texts_of(await pipeline.rest()) == {1: "Good tom"}
    assert await pipeline.call.code() is grpc.StatusCode.OK
    assert served.count("requests_total", "BatchTranslateText", "OK") == 1
    [record] = served.records
    assert (record.method, record.request_id, record.model) == ("BatchTranslateText", "mine", "en-de")
    tokens = sum(len(segment.source_ids) - 1 for segment in segments)
    assert (record.texts, record.segments, record.source_tokens) == (3, 3, tokens)
    assert record.caller == "ipv4:127.0.0.1"


async def test_in_order_waits_for_those_before(served) -> None:
    pipeline = await Pipeline.begin(served, in_order=True)
    await pipeline.write("tom", " ", "station", "Good tom")
    first, second, third = await served.taken(3)
    served.exhaust(second)
    served.exhaust(first)
    answers = list((await pipeline.read()).translations)
    while len(answers) < 3:
        answers += (await pipeline.read()).translations
    assert [answer.content_index for answer in answers] == [0, 1, 2]
    served.exhaust(third)
    assert texts_of((await pipeline.read()).translations) == {3: "Good tom"}


async def test_what_is_ready_at_once_is_one_message(served) -> None:
    pipeline = await Pipeline.begin(served)
    await pipeline.write(*["tom"] * 20)
    segments = await served.taken(20)
    for segment in segments:
        while len(segment.target_ids) < len(segment.source_ids) - 1:
            served.step(segment)
    for segment in segments:
        segment.finish(FinishReason.EOS, 0.0)
    served.mailbox.deliver(segments)
    assert len((await pipeline.read()).translations) == 20


async def test_texts_are_bulk_unless_asked_otherwise(served) -> None:
    for asked, expected in ((None, Priority.BULK), (pb.PRIORITY_INTERACTIVE, Priority.INTERACTIVE)):
        pipeline = await Pipeline.begin(served, priority=asked)
        await pipeline.write("tom")
        [segment] = await served.taken(1)
        assert segment.priority is expected
        served.exhaust(segment)
        await pipeline.read()


async def test_no_texts_no_answers(served) -> None:
    pipeline = await Pipeline.begin(served)
    await pipeline.call.done_writing()
    assert await pipeline.rest() == []


async def test_bad_texts_are_errors_of_their_own(served) -> None:
    pipeline = await Pipeline.begin(served)
    await pipeline.write("tom. Good tom.", "tom")
    await pipeline.write(TOO_LARGE)
    await pipeline.call.done_writing()
    poisonous, sibling, healthy = await served.taken(3)
    poisonous.fail_alone(0.0)
    served.mailbox.deliver([poisonous])
    await until(lambda: sibling.cancel_requested)
    served.exhaust(healthy)
    answers = {answer.content_index: answer.translation for answer in await pipeline.rest()}
    assert type(from_text_error(answers[0].text_error)) is TextFailedError
    assert answers[1].translated_text == "tom"
    too_large = from_text_error(answers[2].text_error)
    assert too_large.violations == [("contents[2]", "must be at most 1100000 bytes, is 1100001")]


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([], "config"),
        ([{"contents": ["tom"]}], "config"),
        ([{"config": {"model": "en-de"}, "contents": ["tom"]}], "contents"),
        ([{"config": {"model": "en-de"}}, {"config": {"model": "en-de"}, "contents": ["tom"]}], "config"),
        ([{"config": {"model": "en-de"}}, {}], "contents"),
        ([{"config": {"model": "en-de"}}, {"contents": ["tom"] * 1025}], "contents"),
        ([{"config": {"model": "en-de", "mime_type": "x"}}], "config.mime_type"),
        ([{"config": {"model": "en-de", "request_id": "no no"}}], "config.request_id"),
        ([{"config": {"model": "en-de", "priority": 9}}], "config.priority"),
        ([{"config": {"model": "en-de", "options": {"max_target_tokens": 99}}}], "config.options.max_target_tokens"),
    ],
)
async def test_a_message_that_breaks_the_rules_fails_the_call(served, messages, field) -> None:
    pipeline = Pipeline(served)
    for message in messages:
        await pipeline.call.write(pb.BatchTranslateTextRequest(**message))
    await pipeline.call.done_writing()
    error = await pipeline.error()
    assert type(error) is InvalidRequestError
    assert [violation.field for violation in error.violations] == [field]


async def test_an_unknown_model_is_refused_and_the_error_names_the_request(served) -> None:
    pipeline = Pipeline(served)
    await pipeline.write(config=pb.BatchTranslateTextConfig(model="xx", request_id="mine"))
    error = await pipeline.error()
    assert isinstance(error, UnknownModelError)
    assert error.request_id == "mine"
    assert served.count("rejected_total", "UNKNOWN_MODEL") == 1


@with_settings
async def test_it_reads_on_only_while_there_is_room(served) -> None:
    pipeline = await Pipeline.begin(served, in_order=True)
    for _ in range(5):
        await pipeline.write("tom", "station")
    segments = await served.taken(4)
    served.exhaust(segments[3])
    served.exhaust(segments[1])
    # In order: those that are finished wait for the first one, and keep their room.
    await served.client.list_models()
    assert len(served.mailbox.waiting) == 0
    served.exhaust(segments[0])
    answers = list((await pipeline.read()).translations)
    segments += await served.taken(2)
    await pipeline.call.done_writing()
    served.exhaust(segments[2])
    for segment in segments[4:]:
        served.exhaust(segment)
    for segment in await served.taken(4):
        served.exhaust(segment)
    answers += await pipeline.rest()
    assert [answer.content_index for answer in answers] == list(range(10))


@pytest.mark.parametrize("server_settings", [{"queue_source_tokens": 40}], indirect=True)
async def test_a_full_queue_makes_it_wait(served) -> None:
    other = asyncio.create_task(served.client.translate("where is the station " * 10, model="en-de"))
    await until(lambda: len(served.mailbox.waiting) > 0)
    pipeline = await Pipeline.begin(served, in_order=True)
    texts = [f"tom {number}" for number in range(12)]
    await pipeline.write(*texts)
    await pipeline.call.done_writing()
    playing = asyncio.create_task(_play(served))
    answers = await pipeline.rest()
    assert [answer.translation.translated_text for answer in answers] == texts
    assert (await other).text
    assert served.count("rejected_total", "QUEUE_FULL") == 0
    playing.cancel()


async def _play(served: ServedEngine) -> None:
    while True:
        for segment in await served.taken(1):
            served.exhaust(segment)
        await asyncio.sleep(0)


async def test_a_client_that_leaves_withdraws_its_segments(served) -> None:
    pipeline = await Pipeline.begin(served)
    await pipeline.write("tom", "station", "Good tom")
    running = await served.taken(2)
    pipeline.call.cancel()
    await until(lambda: served.count("requests_total", "BatchTranslateText", "CANCELLED") == 1)
    assert len(served.mailbox.waiting) == 0
    assert all(segment.cancel_requested for segment in running)


async def test_a_passed_deadline_fails_the_call(served) -> None:
    while not served.count("requests_total", "BatchTranslateText", "DEADLINE_EXCEEDED"):
        pipeline = Pipeline(served, timeout_s=0.3)
        # On a busy machine the deadline may pass before the server has seen anything.
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await pipeline.write(config=pb.BatchTranslateTextConfig(model="en-de"))
            await pipeline.write("tom")
        assert isinstance(await pipeline.error(), DeadlineExceededError)
    await served.gate.idle()
    assert len(served.mailbox.waiting) == 0


async def test_a_failed_engine_fails_the_call(served) -> None:
    pipeline = await Pipeline.begin(served)
    await pipeline.write("tom")
    await served.taken(1)
    served.gate.abandon(InternalError("the engine failed"))
    assert isinstance(await pipeline.error(), InternalError)


async def test_closing_answers_what_was_read_and_says_how_far_it_got(served) -> None:
    pipeline = await Pipeline.begin(served)
    await pipeline.write("tom", "station")
    segments: list[Decode] = await served.taken(2)
    served.gate.close()
    for segment in segments:
        served.exhaust(segment)
    answers: list[pb.BatchTranslation] = []
    while len(answers) < 2:
        answers += (await pipeline.read()).translations
    error = await pipeline.error()
    assert isinstance(error, DrainingError)
    assert error.metadata == {"answered_texts": "2"}
    assert error.retry_delay_s
    assert texts_of(answers) == {0: "tom", 1: "station"}
    await served.gate.idle()


@pytest.mark.parametrize("config", [True, False])
async def test_closing_ends_a_stream_that_says_nothing(served, config) -> None:
    pipeline = await Pipeline.begin(served) if config else Pipeline(served)
    await until(lambda: served.gate.running == 1)
    served.gate.close()
    assert isinstance(await pipeline.error(), DrainingError)


async def test_one_that_does_not_read_its_answers_is_not_read_from_and_can_be_abandoned(served) -> None:
    pipeline = await Pipeline.begin(served)
    written = 0

    async def write_much() -> None:
        nonlocal written
        for _ in range(1_000):
            await pipeline.write(" " * 100_000)
            written += 1

    writing, seen = asyncio.create_task(write_much()), -1
    while seen != written:  # if this stops too early, the test is only weaker
        seen = written
        await asyncio.sleep(0.2)
    assert not writing.done()
    served.gate.close()
    served.gate.abandon(DrainingError("took too long"))
    async with asyncio.timeout(PATIENCE_S):
        await served.gate.idle()
    assert served.count("requests_total", "BatchTranslateText", "UNAVAILABLE") == 1
    pipeline.call.cancel()
    await asyncio.gather(writing, return_exceptions=True)


@pytest.mark.parametrize("server_settings", [{"max_answer_bytes": 65_536}], indirect=True)
@pytest.mark.parametrize("in_order", [False, True])
async def test_answers_that_are_ready_together_are_spread_over_messages(served, tokenizer, in_order) -> None:
    pipeline = await Pipeline.begin(served, in_order=in_order, request_id="mine")
    await pipeline.write("tom", *[" " * 30_000] * 9)
    await pipeline.call.done_writing()
    [segment] = await served.taken(1)
    segment.target_ids.extend(tokenizer.encode("station" * 10_000))
    segment.finish(FinishReason.EOS, 0.0)
    served.mailbox.deliver([segment])
    answers, ids = [], []
    while (message := await pipeline.read()) is not grpc.aio.EOF:
        assert 0 < message.ByteSize() <= 65_536
        answers += message.translations
        ids.append(message.request_id)
    assert ids[0] == "mine"
    assert not any(ids[1:])
    by_index = {answer.content_index: answer.translation for answer in answers}
    assert len(by_index) == len(answers) == 10
    if in_order:
        assert list(by_index) == list(range(10))
    assert type(from_text_error(by_index.pop(0).text_error)) is AnswerTooLargeError
    assert {translation.translated_text for translation in by_index.values()} == {" " * 30_000}
    [record] = served.records
    assert record.failed_texts == 1
