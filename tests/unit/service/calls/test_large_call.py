"""A call of many segments on a real mailbox, step by step of the event loop: others have their turn in between."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from dragoman import DrainingError, QueueFullError
from dragoman.errors import InvalidRequestError, TextFailedError
from plugins.batch.call import FedCall
from plugins.batch.window import Window
from service.calls.call import SLICE, Part
from service.calls.large_call import LargeCall
from service.calls.text_worker import TextWorker
from service.decode import Decode, FinishReason
from service.options import RequestOptions
from service.queue.admission import Reservation
from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.settings import Settings
from service.telemetry.access_log import CallStats
from service.telemetry.metrics import Metrics
from service.text.result import TextResult
from tests.unit.service.calls.played_calls import bound, call_of, fail_one, finish, leg_of
from tests.unit.service.calls.played_texts import CharacterTranslator
from tests.unit.service.played import intake_of
from tests.unit.service.played_engine import until

MANY = 5_000  # segments of two tokens
WINDOW = 1_024  # of them that are on their way
AT_ONCE = 200  # segments that one step of the loop may submit or withdraw
PORTION = 64  # segments that are read at a time
LARGE = "a" * MANY
FAILED = TextFailedError("the engine fails on this text")
WIDE = Window(WINDOW, 1_000_000)


def streaming(intake: Intake, window: Window = WIDE, **options) -> FedCall:
    return call_of(FedCall, intake, window=window, **options)


@pytest.fixture
def reservations(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> list[Reservation]:
    """Those of the mailbox, as they are made."""
    reserve, made = mailbox.admission.reserve, list[Reservation]()

    @contextmanager
    def watched(options: RequestOptions, text_bytes: int) -> Iterator[Reservation]:
        with reserve(options, text_bytes) as reservation:
            made.append(reservation)
            yield reservation

    monkeypatch.setattr(mailbox.admission, "reserve", watched)
    return made


async def queued_at_each_step(mailbox: Mailbox, task: asyncio.Task) -> list[int]:
    """How many segments wait, seen by another task whenever it has its turn."""
    seen = [len(mailbox.waiting)]
    while not task.done():
        await asyncio.sleep(0)
        seen.append(len(mailbox.waiting))
    return seen


def longest_stride(seen: list[int]) -> int:
    return max(abs(after - before) for before, after in pairwise(seen))


async def test_others_have_their_turn_while_many_segments_are_submitted_and_withdrawn(mailbox, intake) -> None:
    async with asyncio.timeout(60):

        async def come_and_go() -> None:
            async with call_of(LargeCall, intake) as call:
                await call.add([LARGE])
                await until(lambda: len(mailbox.waiting) >= WINDOW)

        seen = await queued_at_each_step(mailbox, asyncio.create_task(come_and_go()))
        assert max(seen) >= WINDOW
        assert 0 < longest_stride(seen) <= AT_ONCE
        assert len(mailbox.waiting) == mailbox.unfinished == 0


async def test_a_call_has_a_bounded_number_of_segments_on_their_way(mailbox, intake) -> None:
    async with asyncio.timeout(60), call_of(LargeCall, intake) as call:
        await call.add([LARGE])
        waiting = asyncio.create_task(call.done())
        seen, left = [0], MANY
        while left:
            await asyncio.sleep(0)
            seen.append(len(mailbox.waiting))
            if len(seen) % 20 == 0:
                left -= len(finish(mailbox, 100))
        await waiting
        assert WINDOW <= max(seen) < WINDOW + PORTION
        assert call.finished(0)
        [result] = (await call.results([0])).values()
        assert result.segments == MANY


async def test_a_full_queue_takes_a_large_call_in_portions() -> None:
    """The limit of its client is a twentieth of what it has: more enters only as earlier segments leave."""
    mailbox = bound(Mailbox(MANY // 10))
    async with asyncio.timeout(60), streaming(intake_of(mailbox)) as call:
        fed = asyncio.create_task(call.feed([LARGE]))
        done, longest = 0, 0
        while done < MANY:
            await asyncio.sleep(0)
            longest = max(longest, mailbox.waiting.load.source_tokens)
            done += len(finish(mailbox, 20))
        await fed
        await call.done()
    assert longest <= MANY // 10


async def test_what_is_still_to_come_of_a_call_counts_for_its_own_client_and_for_no_other(mailbox, intake) -> None:
    mailbox.submit([Decode([1, 2], 8, client="c", text_bytes=1)])  # by which a byte is two tokens
    async with call_of(LargeCall, intake) as call:
        await call.add(["a" * 12_000])
        await until(lambda: len(mailbox.waiting) > 1)
        mailbox.submit([Decode([1, 2], 8, client="b", text_bytes=1)])
        with pytest.raises(QueueFullError):
            mailbox.submit([Decode([1, 2], 8, client="a", text_bytes=1)])
        mailbox.submit([Decode([1, 2], 8, client="b", text_bytes=1)])
    mailbox.submit([Decode([1, 2], 8, client="a", text_bytes=1)])  # nothing is kept for who has left


async def test_what_has_come_of_a_call_does_not_count_as_still_to_come(mailbox, intake, reservations) -> None:
    async with asyncio.timeout(60), call_of(LargeCall, intake) as call:
        await call.add([LARGE])
        [reservation] = reservations
        assert reservation.text_bytes == MANY
        await until(lambda: len(mailbox.waiting) > PORTION)
        assert reservation.text_bytes == MANY - len(mailbox.waiting)
        left = MANY
        while left:
            await asyncio.sleep(0)
            left -= len(finish(mailbox, 100))
        await call.done()
        assert reservation.text_bytes == 0


@pytest.mark.parametrize("first", ["b" * PORTION + "!" * MANY, LARGE], ids=["read", "translated"])
async def test_what_is_left_of_a_text_that_has_failed_is_not_still_to_come(
    mailbox, intake, reservations, first
) -> None:
    translator = CharacterTranslator(TextFailedError("cannot be read"))
    async with asyncio.timeout(60), call_of(LargeCall, intake, translator=translator) as call:
        await call.add([first, LARGE])
        [reservation] = reservations
        await until(lambda: len(mailbox.waiting) > 0)
        if first == LARGE:
            fail_one(mailbox, FAILED)
        await until(lambda: len(mailbox.waiting) >= WINDOW)
        assert reservation.text_bytes == MANY - len(mailbox.waiting)


async def test_one_who_leaves_in_the_middle_leaves_nothing(mailbox, intake) -> None:
    async def come() -> None:
        async with streaming(intake) as call:
            await call.feed([LARGE])

    running = asyncio.create_task(come())
    await until(lambda: len(mailbox.waiting) > AT_ONCE)
    running.cancel()  # at the submission ...
    await asyncio.sleep(0)
    running.cancel()  # ... and at the withdrawal
    with pytest.raises(asyncio.CancelledError):
        await running
    assert mailbox.unfinished == 0


async def test_what_a_full_queue_refused_was_not_cancelled(mailbox, intake) -> None:
    record, metrics = CallStats("TranslateText"), Metrics()
    full = bound(Mailbox(2))
    full.submit([Decode([1, 2], 8, client="a")])
    parts = [Part(leg_of(intake), [0]), Part(leg_of(intake_of(full)), [1])]
    async with LargeCall(parts, TextWorker(Settings()), metrics, record) as call:
        with pytest.raises(QueueFullError):
            await call.add(["aa", "bbb"])
    assert metrics.total("cancelled_segments_total") == record.segments == 2


async def test_what_waits_for_room_in_a_full_queue_is_not_counted() -> None:
    record, metrics, translator = CallStats("TranslateText"), Metrics(), CharacterTranslator()
    full = bound(Mailbox(2))
    full.submit([Decode([1, 2], 8, client="a")])
    parts = [Part(leg_of(intake_of(full), translator))]
    async with LargeCall(parts, TextWorker(Settings()), metrics, record) as call:
        await call.add([LARGE])
        await until(lambda: len(translator.read) == PORTION)
        await asyncio.sleep(0.02)
        assert record.segments == 0
    assert metrics.total("cancelled_segments_total") == record.segments == 0


async def test_a_translation_into_the_pivot_language_may_be_larger_than_a_text_of_the_caller(mailbox, intake) -> None:
    next_mailbox = bound(Mailbox(20_000))
    parts = [Part(leg_of(intake, CharacterTranslator(writes="xxx"), then=leg_of(intake_of(next_mailbox))))]
    worker = TextWorker(Settings(max_text_bytes=4))
    async with asyncio.timeout(60), LargeCall(parts, worker, Metrics(), CallStats("TranslateText")) as call:
        await call.add(["aaaa", "aaaaa"])
        finish(mailbox, 4)
        await until(lambda: len(next_mailbox.waiting) > 0)
        finish(next_mailbox, 12)
        fine, large = (await call.done()).values()
        assert isinstance(fine, TextResult)
        assert isinstance(large, InvalidRequestError)


async def test_a_text_that_ends_while_its_call_does_goes_to_no_next_model(mailbox, intake) -> None:
    next_mailbox = bound(Mailbox(20_000))
    parts = [Part(leg_of(intake, then=leg_of(intake_of(next_mailbox))))]
    async with LargeCall(parts, TextWorker(Settings()), Metrics(), CallStats("TranslateText")) as call:
        await call.add(["a" * SLICE, "b"])
        *_, last = mailbox.take(0, SLICE + 1, wait=False)
        last.finish(FinishReason.EOS, 0.0)
        mailbox.deliver([last])  # told of while the others are withdrawn
    await asyncio.sleep(0.01)
    assert next_mailbox.unfinished == 0


async def test_what_has_failed_meanwhile_is_not_read_to_its_end(mailbox, intake) -> None:
    async with streaming(intake) as call:
        fed = asyncio.create_task(call.feed([LARGE, "b"]))
        await until(lambda: len(mailbox.waiting) > 0)
        fail_one(mailbox, FAILED)
        await fed
        assert mailbox.unfinished == 1
        finish(mailbox, 1)
        await call.done()
        assert call.ready(in_order=True) == [0, 1]
        failed, fine = (await call.results([0, 1])).values()
        assert isinstance(failed, TextFailedError)
        assert isinstance(fine, TextResult)


async def test_a_text_that_cannot_be_read_is_an_error_of_its_own(mailbox, intake) -> None:
    error = TextFailedError("cannot be read")
    texts = ["!" * 600, "a"]
    async with streaming(intake, translator=CharacterTranslator(error)) as call:
        await call.feed(texts)
        finish(mailbox, 1)
        await call.done()
        failed, fine = (await call.results([0, 1])).values()
        assert failed is error
        assert isinstance(fine, TextResult)
    async with call_of(LargeCall, intake, translator=CharacterTranslator(error), all_or_nothing=True) as call:
        await call.add(texts)
        with pytest.raises(TextFailedError, match="cannot be read"):
            await call.done()


async def test_an_error_of_a_segment_ends_the_submission(mailbox, intake) -> None:
    record = CallStats("TranslateText")
    async with streaming(intake, record=record, all_or_nothing=True) as call:
        submission = asyncio.create_task(call.feed([LARGE]))
        await until(lambda: len(mailbox.waiting) > 0)
        fail_one(mailbox, FAILED)
        with pytest.raises(TextFailedError):
            await submission
    assert mailbox.unfinished == 0
    assert record.admitted  # it was no refusal


async def test_a_server_that_closes_ends_a_call_that_is_being_fed(mailbox, intake) -> None:
    async with call_of(LargeCall, intake) as call:
        await call.add([LARGE])
        await until(lambda: len(mailbox.waiting) > 0)
        mailbox.close()
        with pytest.raises(DrainingError):
            await call.done()
    assert mailbox.unfinished == 0


async def test_texts_are_numbered_as_they_come_and_held_until_they_are_forgotten(mailbox, intake) -> None:
    async with streaming(intake) as call:
        await call.feed(["a", "bb"])
        await call.feed(["c"])
        assert (call.count, call.held, call.ready(in_order=False)) == (3, 3, [])
        first, *_, last = mailbox.take(0, 4, wait=False)
        last.finish(FinishReason.EOS, 0.0)
        mailbox.deliver([last])
        assert await call.moved() == {2}
        assert (call.ready(in_order=False), call.ready(in_order=True)) == ([2], [])
        first.finish(FinishReason.EOS, 0.0)
        mailbox.deliver([first])
        assert await call.moved() == {0}
        assert (call.ready(in_order=False), call.ready(in_order=True)) == ([0, 2], [0])
        call.forget([0])
        assert (call.count, call.held, call.ready(in_order=False)) == (3, 2, [2])


@pytest.mark.parametrize("window", [Window(2, 1_000), Window(10, 40)])
async def test_texts_wait_for_room_in_the_window(mailbox, intake, window: Window) -> None:
    async with asyncio.timeout(60), streaming(intake, window=window) as call:
        feeding = asyncio.create_task(call.feed([letter * 20 for letter in "abcd"]))
        counts = []
        for number in range(4):
            await until(lambda: call.held == 2 or call.count == 4)
            counts.append(call.count)
            finish(mailbox, 20)
            await until(lambda: bool(call.ready(in_order=True)))
            assert call.ready(in_order=True) == [number]
            call.forget([number])
        assert counts == [2, 3, 4, 4]
        await feeding
        assert (call.count, call.held) == (4, 0)
