"""A call of many segments on a real mailbox, step by step of the event loop: others have their turn in between."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from dragoman import DrainingError, QueueFullError
from dragoman.errors import TextFailedError
from dragoman.tokenizer import Tokenizer
from service.calls.call import Call, Read
from service.options import RequestOptions
from service.queue.mailbox import Mailbox
from service.queue.result_cache import ResultCache
from service.registry.catalog import Intake
from service.segment import FinishReason, Segment
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics
from service.text.document import Document, Part
from tests.unit.service.house import until

MANY = 5_000  # segments of two tokens
WINDOW = 1_024  # of them that are on their way
AT_ONCE = 200  # segments that one step of the loop may submit or withdraw
PORTION = 50  # segments that are read at a time

MakeCall = Callable[..., Call]


@pytest.fixture
async def mailbox() -> Mailbox:
    mailbox = Mailbox(20_000)
    mailbox.bind(asyncio.get_running_loop())
    mailbox.register_worker()
    return mailbox


@pytest.fixture(params=["mailbox", "cache"])
async def intake(mailbox: Mailbox, request: pytest.FixtureRequest) -> Intake:
    if request.param == "mailbox":
        return mailbox
    loop = asyncio.get_running_loop()
    return ResultCache(mailbox, loop, Metrics().of("en-de"), limit_bytes=1_000_000, coalesce=True)


@pytest.fixture
def make_call(intake: Intake) -> MakeCall:
    return lambda record=None, **options: Call(intake, Metrics(), record or CallStats("TranslateText"), **options)


@pytest.fixture
def make_document(tokenizer: Tokenizer) -> Callable[..., Document]:
    """Of different segments, of which nothing has been read."""

    def make(call: Call, number: int = 0, segments: int = MANY, first: int = 0) -> Document:
        made = (
            Part(
                "",
                Segment([first + place, 2], 8, on_progress=lambda segment: call.progress(number, segment), client="a"),
            )
            for place in range(segments)
        )
        return Document(
            made, tokenizer, text_bytes=segments, characters=segments, unknown_id=3, wants_log_probability=False
        )

    return make


async def read(texts: deque[tuple[int, Document]]) -> Sequence[Read]:
    """The next segments of the first text."""
    number, document = texts[0]
    parts = document.read(PORTION)
    last = len(parts) < PORTION
    if last:
        texts.popleft()
    await asyncio.sleep(0)
    return [Read(number, document.add(parts, last=last), last)]


def finish(mailbox: Mailbox, count: int) -> list[Segment]:
    """What an engine does."""
    taken = mailbox.take(0, count, wait=False) or []
    for segment in taken:
        segment.finish(FinishReason.EOS, 0.0)
    mailbox.deliver(taken)
    return taken


async def queued_at_each_step(mailbox: Mailbox, task: asyncio.Task) -> list[int]:
    """How many segments wait, seen by another task whenever it has its turn."""
    seen = [mailbox.queued_segments]
    while not task.done():
        await asyncio.sleep(0)
        seen.append(mailbox.queued_segments)
    return seen


def longest_stride(seen: list[int]) -> int:
    return max(abs(after - before) for before, after in pairwise(seen))


async def test_others_have_their_turn_while_many_segments_are_submitted_and_withdrawn(
    mailbox, make_call, make_document
) -> None:
    async with asyncio.timeout(60):

        async def come_and_go() -> None:
            call = make_call()
            async with call:
                with mailbox.reserve(RequestOptions(client="a"), MANY) as promise:
                    call.begin({0: make_document(call)}, read, promise)
                    await until(lambda: mailbox.queued_segments >= WINDOW)

        seen = await queued_at_each_step(mailbox, asyncio.create_task(come_and_go()))
        assert max(seen) >= WINDOW
        assert 0 < longest_stride(seen) <= AT_ONCE
        assert mailbox.queued_segments == mailbox.unfinished == 0


async def test_a_call_has_a_bounded_number_of_segments_on_their_way(mailbox, make_call, make_document) -> None:
    async with asyncio.timeout(60), make_call() as call:
        document = make_document(call)
        with mailbox.reserve(RequestOptions(client="a"), MANY) as promise:
            call.begin({0: document}, read, promise)
            waiting = asyncio.create_task(call.complete())
            seen, left = [0], MANY
            while left:
                await asyncio.sleep(0)
                seen.append(mailbox.queued_segments)
                if len(seen) % 20 == 0:
                    left -= len(finish(mailbox, 100))
            await waiting
            assert WINDOW <= max(seen) < WINDOW + PORTION
            assert promise.text_bytes == 0
        assert call.finished(0)
        assert len(document.segments) < 2 * WINDOW  # the others are text, and gone
        assert document.result().segments == MANY


async def test_a_full_queue_takes_a_large_call_in_portions(make_document) -> None:
    """The limit of its client is a twentieth of what it has: more enters only as earlier segments leave."""
    mailbox = Mailbox(MANY // 10)
    mailbox.bind(asyncio.get_running_loop())
    mailbox.register_worker()
    async with asyncio.timeout(60), Call(mailbox, Metrics(), CallStats("TranslateText")) as call:
        fed = asyncio.create_task(call.feed({0: make_document(call)}, read))
        done, longest = 0, 0
        while done < MANY:
            await asyncio.sleep(0)
            longest = max(longest, mailbox.queued_source_tokens)
            done += len(finish(mailbox, 20))
        await fed
        await call.complete()
    assert longest <= MANY // 10


async def test_what_is_still_to_come_of_a_call_counts_for_its_own_client_and_for_no_other(
    mailbox, make_call, make_document
) -> None:
    limit = mailbox.limit_source_tokens
    async with make_call() as call:
        with mailbox.reserve(RequestOptions(client="a"), 100 * limit) as promise:
            call.begin({0: make_document(call)}, read, promise)
            await until(lambda: mailbox.queued_segments > 0)
            first, *_ = mailbox.take(0, 1, wait=False) or []
            first.text_bytes = 2  # a token a byte
            mailbox.submit([Segment([1, 2], 8, client="b", text_bytes=2)])
            with pytest.raises(QueueFullError):
                mailbox.submit([Segment([1, 2], 8, client="a", text_bytes=2)])
            mailbox.submit([Segment([1, 2], 8, client="b", text_bytes=2)])
    mailbox.submit([Segment([1, 2], 8, client="a", text_bytes=2)])  # nothing is kept for who has left


async def test_a_small_call_is_let_in_or_refused_as_a_whole(make_call, make_document, mailbox) -> None:
    first, call = make_call(), make_call()
    documents = [make_document(each, segments=count) for each, count in ((first, 2), (call, 11_000))]
    for document in documents:
        document.read_all()
    first.submit({0: documents[0]})
    with pytest.raises(QueueFullError):
        call.submit({0: documents[1]})
    assert mailbox.queued_segments == 2


async def test_one_who_leaves_in_the_middle_leaves_nothing(mailbox, make_call, make_document) -> None:
    async def come() -> None:
        call = make_call()
        async with call:
            await call.feed({0: make_document(call)}, read)

    running = asyncio.create_task(come())
    await until(lambda: mailbox.queued_segments > AT_ONCE)
    running.cancel()  # at the submission ...
    await asyncio.sleep(0)
    running.cancel()  # ... and at the withdrawal
    with pytest.raises(asyncio.CancelledError):
        await running
    assert mailbox.unfinished == 0


async def test_what_has_failed_meanwhile_is_not_read_to_its_end(mailbox, make_call, make_document) -> None:
    call = make_call()
    fed = asyncio.create_task(call.feed({0: make_document(call), 1: make_document(call, 1, 1, MANY)}, read))
    await until(lambda: mailbox.queued_segments > 0)
    [taken] = mailbox.take(0, 1, wait=False)
    taken.fail(TextFailedError("the engine fails on this text"), 0.0)
    mailbox.deliver([taken])
    await fed
    assert mailbox.unfinished == 1
    finish(mailbox, 1)
    await call.complete()
    assert isinstance(call.text(0), TextFailedError)
    assert call.finished(0)


async def test_a_text_that_cannot_be_read_is_an_error_of_its_own(mailbox, make_call, make_document) -> None:
    error = TextFailedError("cannot be read")

    async def fail_at_first(texts: deque[tuple[int, Document]]) -> Sequence[Read]:
        if texts[0][0] == 0:
            texts.popleft()
            return [Read(0, error=error)]
        return await read(texts)

    texts = {0: make_document, 1: make_document}
    async with make_call() as call:
        await call.feed({number: make(call, number, 1) for number, make in texts.items()}, fail_at_first)
        finish(mailbox, 1)
        await call.complete()
        assert call.text(0) is error
    async with make_call(all_or_nothing=True) as call:
        with mailbox.reserve(RequestOptions(), 1) as promise:
            call.begin({0: make_document(call, segments=1)}, fail_at_first, promise)
            with pytest.raises(TextFailedError, match="cannot be read"):
                await call.complete()


async def test_an_error_of_a_segment_ends_the_submission(mailbox, make_call, make_document) -> None:
    record = CallStats("TranslateText")
    call = make_call(record, all_or_nothing=True)
    async with call:
        submission = asyncio.create_task(call.feed({0: make_document(call)}, read))
        await until(lambda: mailbox.queued_segments > 0)
        [taken] = mailbox.take(0, 1, wait=False)
        taken.fail(TextFailedError("the engine fails on this text"), 0.0)
        mailbox.deliver([taken])
        with pytest.raises(TextFailedError):
            await submission
    assert mailbox.unfinished == 0
    assert record.admitted  # it was no refusal


async def test_a_server_that_closes_ends_a_call_that_is_being_fed(mailbox, make_call, make_document) -> None:
    async with make_call() as call:
        with mailbox.reserve(RequestOptions(client="a"), MANY) as promise:
            call.begin({0: make_document(call)}, read, promise)
            await until(lambda: mailbox.queued_segments > 0)
            mailbox.close()
            with pytest.raises(DrainingError):
                await call.complete()
    assert mailbox.unfinished == 0
