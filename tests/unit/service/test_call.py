"""A call of many segments on a real mailbox, step by step of the event loop: others have their turn in between."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from dragoman import QueueFullError
from dragoman.errors import TextFailedError
from dragoman.tokenizer import Tokenizer
from service.call import Call
from service.catalog import Intake
from service.mailbox import Mailbox
from service.metrics import Metrics
from service.record import Record
from service.request import Segment
from service.result_cache import ResultCache
from service.translator import Document

MANY = 1_000  # segments of two tokens
AT_ONCE = 200  # segments that one step of the loop may submit or withdraw

MakeCall = Callable[..., Call]


@pytest.fixture
async def mailbox() -> Mailbox:
    """One whose queue is full with another client's two tokens and what `document` has."""
    mailbox = Mailbox(2 * MANY + 2)
    mailbox.bind(asyncio.get_running_loop())
    mailbox.enlist()
    return mailbox


@pytest.fixture(params=["mailbox", "cache"])
async def intake(mailbox: Mailbox, request: pytest.FixtureRequest) -> Intake:
    if request.param == "mailbox":
        return mailbox
    loop = asyncio.get_running_loop()
    return ResultCache(mailbox, loop, Metrics().of("en-de"), limit_bytes=1_000_000, coalesce=True)


@pytest.fixture
def make_call(intake: Intake) -> MakeCall:
    return lambda record=None, **options: Call(intake, Metrics(), record or Record("TranslateText"), **options)


@pytest.fixture
def make_document(tokenizer: Tokenizer) -> Callable[..., Document]:
    def make(call: Call, index: int = 0, segments: int = MANY, first: int = 0) -> Document:
        made = [
            Segment([first + place, 2], 8, on_progress=lambda segment: call.progress(index, segment), client="a")
            for place in range(segments)
        ]
        return Document(made, [""] * (segments + 1), tokenizer, inlays=[], unknown_pieces=0, split=False)

    return make


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
        call = make_call()
        async with call:
            submission = asyncio.create_task(call.submit({0: make_document(call)}))
            seen = await queued_at_each_step(mailbox, submission)
            await submission
            assert seen[-1] == MANY
            assert 0 < longest_stride(seen) <= AT_ONCE
        assert mailbox.queued_segments == 0

        async def come_and_go() -> None:
            call = make_call()
            async with call:
                await call.submit({0: make_document(call)})

        seen = await queued_at_each_step(mailbox, asyncio.create_task(come_and_go()))
        assert 0 < longest_stride(seen) <= AT_ONCE
        assert mailbox.unfinished == 0


async def test_room_is_kept_for_those_that_have_been_let_in(mailbox, make_call, make_document) -> None:
    call, other = make_call(), make_call()
    submission = asyncio.create_task(call.submit({0: make_document(call)}))
    await asyncio.sleep(0)
    assert 0 < mailbox.queued_segments < MANY
    await other.submit({0: make_document(other, segments=1, first=MANY)})
    for segments in (1, 2 * AT_ONCE):  # in one slice, and in several
        with pytest.raises(QueueFullError, match=f"{2 * MANY + 2} source tokens wait"):
            await other.submit({1: make_document(other, segments=segments, first=MANY + 1)})
    await submission
    assert mailbox.queued_segments == MANY + 1


async def test_a_refusal_is_of_all(mailbox, make_call, make_document) -> None:
    first, call = make_call(), make_call()
    await first.submit({0: make_document(first, segments=2, first=MANY)})
    with pytest.raises(QueueFullError):
        await call.submit({0: make_document(call)})
    assert mailbox.queued_segments == 2


async def test_one_who_leaves_in_the_middle_leaves_nothing(mailbox, make_call, make_document) -> None:
    async def come() -> None:
        call = make_call()
        async with call:
            await call.submit({0: make_document(call)})

    running = asyncio.create_task(come())
    await asyncio.sleep(0)
    assert 0 < mailbox.queued_segments < MANY
    running.cancel()  # at the submission ...
    await asyncio.sleep(0)
    running.cancel()  # ... and at the withdrawal
    with pytest.raises(asyncio.CancelledError):
        await running
    assert mailbox.unfinished == 0
    again = make_call()
    await make_call().submit({0: make_document(again, segments=1, first=MANY)})
    await again.submit({0: make_document(again)})  # no room is kept for who has left


async def test_what_has_failed_meanwhile_is_not_submitted(mailbox, make_call, make_document) -> None:
    call = make_call()
    document = make_document(call)
    submission = asyncio.create_task(call.submit({0: document}))
    await asyncio.sleep(0)
    [taken] = mailbox.take(0, 1, wait=False)
    taken.fail(TextFailedError("the engine fails on this text"), 0.0)
    mailbox.deliver([taken])
    await submission
    assert mailbox.unfinished == 0
    await call.complete()
    assert isinstance(call.text(0), TextFailedError)


async def test_an_error_of_a_segment_ends_the_submission(mailbox, make_call, make_document) -> None:
    record = Record("TranslateText")
    call = make_call(record, all_or_nothing=True)
    async with call:
        submission = asyncio.create_task(call.submit({0: make_document(call)}))
        await asyncio.sleep(0)
        [taken] = mailbox.take(0, 1, wait=False)
        taken.fail(TextFailedError("the engine fails on this text"), 0.0)
        mailbox.deliver([taken])
        with pytest.raises(TextFailedError):
            await submission
    assert mailbox.unfinished == 0
    assert record.admitted  # it was no refusal
