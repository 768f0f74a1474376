"""The mailbox and its event loop; the tests themselves play the engine."""

import asyncio
import threading

import pytest

from dragoman.errors import (
    DeadlineExceededError,
    DeadlineUnreachableError,
    DrainingError,
    InternalError,
    OverloadedError,
    QueueFullError,
)
from service.decode import Decode, DecodeStatus, FinishReason
from service.options import Decoding, Priority, RequestOptions
from service.queue.fair_queue import FairQueue
from service.queue.mailbox import Mailbox
from service.telemetry.metrics import Metrics, ModelMetrics
from tests.unit.service.queue.conftest import Clock


def opened(limit_source_tokens: int, metrics: ModelMetrics | None = None, workers: int = 1) -> Mailbox:
    mailbox = Mailbox(limit_source_tokens, metrics)
    assert [mailbox.register_worker() for _ in range(workers)] == list(range(workers))
    return mailbox


def segments(*lengths: int, **fields) -> list[Decode]:
    return [Decode([2] * length, 9, **fields) for length in lengths]


def finish(mailbox: Mailbox, *ended: Decode) -> None:
    """What an engine does at the end of segments."""
    for segment in ended:
        segment.finish(FinishReason.EOS, 0.0)
    mailbox.deliver(list(ended))


def test_segments_are_taken_in_order_of_arrival() -> None:
    mailbox = opened(100)
    first, second, third = segments(5, 1, 3)
    mailbox.submit([first, second])
    mailbox.submit([third])
    assert mailbox.take(0, 2, wait=False) == [first, second]
    assert mailbox.take(0, 2, wait=False) == [third]
    assert mailbox.take(0, 2, wait=False) == []


def test_a_decode_is_taken_that_came_after_an_empty_take() -> None:
    mailbox = opened(100)
    assert [mailbox.take(0, 2, wait=False, demand=2) for _ in range(3)] == [[], [], []]
    waiting = segments(5)
    mailbox.submit(waiting)
    assert mailbox.take(0, 2, wait=False, demand=2) == waiting


def test_a_worker_that_finds_nothing_leaves_no_more_to_the_others_than_it_says() -> None:
    for demand, left in ((2, 1), (0, 3), (1, 2)):
        mailbox = opened(100, workers=2)
        for before in (2, 2, demand, demand):
            assert mailbox.take(0, 4, wait=False, demand=before) == []
            assert mailbox.take(1, 4, wait=False, demand=1) == []
        mailbox.submit(segments(1, 1, 1))
        assert len(mailbox.take(1, 4, wait=False, demand=4) or []) == left


def test_a_decode_that_did_not_fit_and_is_gone_changes_no_later_demand() -> None:
    mailbox = opened(100, workers=2)
    wide = segments(5, decoding=Decoding(beam_size=4))
    assert mailbox.take(0, 2, wait=False, demand=2) == []
    mailbox.submit(wide)
    assert mailbox.take(0, 2, wait=False, demand=2) == []
    mailbox.cancel(wide)
    assert mailbox.take(0, 2, wait=False, demand=2) == []
    mailbox.submit(segments(1, 1))
    assert mailbox.take(1, 2, wait=False, demand=2) == []
    assert len(mailbox.take(0, 2, wait=False, demand=2) or []) == 2


def test_a_worker_that_finds_nothing_is_told_of_a_stop() -> None:
    mailbox = opened(100)
    assert [mailbox.take(0, 2, wait=False) for _ in range(2)] == [[], []]
    mailbox.stop()
    assert mailbox.take(0, 2, wait=False) is None


def test_the_books_follow() -> None:
    mailbox = opened(100)
    first, second, third = segments(5, 1, 3)
    mailbox.submit([first, second, third])
    assert (len(mailbox.waiting), mailbox.waiting.load.source_tokens, mailbox.unfinished) == (3, 9, 3)
    mailbox.take(0, 1, wait=False)
    assert (len(mailbox.waiting), mailbox.waiting.load.source_tokens, mailbox.unfinished) == (2, 4, 3)
    mailbox.cancel([third])
    assert (len(mailbox.waiting), mailbox.waiting.load.source_tokens, mailbox.unfinished) == (1, 1, 2)
    finish(mailbox, first)
    assert (len(mailbox.waiting), mailbox.waiting.load.source_tokens, mailbox.unfinished) == (1, 1, 1)


def test_submission_has_its_time() -> None:
    mailbox = opened(100)
    first, second = segments(1, 1)
    mailbox.submit([first])
    mailbox.submit([second])
    assert first.submitted_s is not None
    assert second.submitted_s is not None
    assert first.submitted_s <= second.submitted_s


def test_a_request_above_the_limit_is_refused_whole() -> None:
    mailbox = opened(10)
    mailbox.submit(segments(4, 4))
    with pytest.raises(QueueFullError) as caught:
        mailbox.submit(segments(1, 2))
    assert caught.value.metadata == {
        "queued_source_tokens": "8",
        "client_source_tokens": "8",
        "request_source_tokens": "3",
        "limit_source_tokens": "10",
    }
    assert (len(mailbox.waiting), mailbox.waiting.load.source_tokens, mailbox.unfinished) == (2, 8, 2)
    mailbox.submit(segments(2))  # as much as there is room for
    assert mailbox.waiting.load.source_tokens == 10


def test_a_call_that_was_let_in_finds_a_full_queue_as_any_other() -> None:
    mailbox = opened(10)
    mailbox.submit(segments(9), let_in=True)
    with pytest.raises(QueueFullError):
        mailbox.submit(segments(2), let_in=True)
    mailbox.submit(segments(1), let_in=True)


def test_an_empty_mailbox_takes_even_what_is_above_the_limit() -> None:
    mailbox = opened(10)
    mailbox.submit(segments(9, 9))
    with pytest.raises(QueueFullError):
        mailbox.submit(segments(1))
    mailbox.take(0, 2, wait=False)
    mailbox.submit(segments(9, 9))  # what is running does not count


def test_nothing_is_nothing() -> None:
    mailbox = opened(10)
    mailbox.submit([])
    mailbox.deliver([])
    mailbox.cancel([])
    assert mailbox.unfinished == len(mailbox.waiting) == 0


def test_a_waiting_segment_is_cancelled_at_once_and_in_silence() -> None:
    mailbox = opened(10)
    [segment] = segments(4, on_progress=lambda _: pytest.fail("told"))
    mailbox.submit([segment])
    mailbox.cancel([segment])
    assert (segment.status, segment.finish_reason) == (DecodeStatus.CANCELLED, FinishReason.CANCELLED)
    assert mailbox.take(0, 1, wait=False) == []
    assert mailbox.unfinished == 0
    mailbox.cancel([segment])  # again: nothing happens
    assert mailbox.unfinished == 0


def test_a_running_segment_is_marked_and_no_more_told_of() -> None:
    mailbox = opened(10)
    [segment] = segments(4, on_progress=lambda _: pytest.fail("told"))
    mailbox.submit([segment])
    mailbox.take(0, 1, wait=False)
    mailbox.cancel([segment])
    assert segment.cancel_requested
    assert not segment.finished  # that is for the engine to do
    assert mailbox.unfinished == 1
    finish(mailbox, segment)
    assert mailbox.unfinished == 0


def test_to_cancel_what_waits_past_its_deadline_ends_it_with_that() -> None:
    mailbox = opened(10)
    [segment] = segments(4, deadline_s=0.0, on_progress=lambda _: pytest.fail("told"))
    mailbox.submit([segment])
    mailbox.cancel([segment])
    assert segment.finish_reason is FinishReason.DEADLINE
    assert isinstance(segment.error, DeadlineExceededError)
    assert mailbox.unfinished == len(mailbox.waiting) == 0


def test_every_end_is_entered_once() -> None:
    metrics = Metrics()
    mailbox = opened(100, metrics.of("en-de"))
    done, running, waiting, failing = segments(1, 1, 1, 1)
    mailbox.submit([done, running, waiting, failing])
    mailbox.take(0, 2, wait=False)
    mailbox.deliver([done, running])  # tokens
    finish(mailbox, done)
    mailbox.cancel([done, running, waiting])
    running.finish(FinishReason.CANCELLED, 0.0)
    mailbox.deliver([running])
    mailbox.fail(InternalError("broken"))

    def ended(reason: str) -> float | None:
        return metrics.total("segments_total", reason=reason)

    assert {reason: ended(reason) for reason in ("EOS", "CANCELLED", "INTERNAL", "LENGTH")} == {
        "EOS": 1,
        "CANCELLED": 2,
        "INTERNAL": 1,
        "LENGTH": 0,
    }
    assert mailbox.unfinished == 0


@pytest.mark.parametrize(("limit", "taken"), [(1, 1), (4, 1), (7, 1), (8, 2), (14, 2), (15, 3), (99, 3), (None, 3)])
def test_a_taker_may_bound_the_tokens_but_gets_one(limit: int | None, taken: int) -> None:
    mailbox = opened(100)
    mailbox.submit(segments(4, 4, 7))
    assert len(mailbox.take(0, 9, wait=False, source_tokens=limit) or []) == taken
    assert len(mailbox.waiting) == 3 - taken


def test_to_cancel_what_has_finished_changes_no_outcome() -> None:
    mailbox = opened(10)
    [segment] = segments(4)
    mailbox.submit([segment])
    mailbox.take(0, 1, wait=False)
    finish(mailbox, segment)
    mailbox.cancel([segment])
    assert segment.finish_reason is FinishReason.EOS
    assert mailbox.unfinished == 0


def test_a_cancelled_segment_makes_room() -> None:
    mailbox = opened(10)
    old = segments(6, 4)
    mailbox.submit(old)
    mailbox.cancel(old[:1])
    mailbox.submit(segments(6))
    assert mailbox.waiting.load.source_tokens == 10


@pytest.mark.parametrize(
    ("waiting", "room", "workers", "shares"),
    [
        (8, 8, 2, [4, 2, 1, 1, 0]),
        (5, 8, 2, [3, 1, 1, 0]),
        (7, 2, 2, [2, 2, 2, 1, 0]),
        (1, 8, 4, [1, 0]),
        (9, 9, 1, [9, 0]),
        (3, 0, 1, [0]),
    ],
)
def test_a_taker_leaves_the_others_their_share(waiting: int, room: int, workers: int, shares: list[int]) -> None:
    mailbox = opened(100, workers=workers)
    mailbox.submit(segments(*[1] * waiting))
    assert [len(mailbox.take(0, room, wait=False) or []) for _ in shares] == shares


def test_few_segments_go_to_the_first_taker_even_while_it_is_busy() -> None:
    mailbox = opened(100, workers=2)
    mailbox.take(0, 9, wait=False, demand=3)
    mailbox.submit(segments(1, 1, 1))
    assert mailbox.take(1, 9, wait=False, demand=3) == []
    mailbox.submit(segments(1))
    assert len(mailbox.take(1, 9, wait=False, demand=3) or []) == 1
    assert len(mailbox.take(0, 9, wait=False, demand=3) or []) == 3


def test_what_a_taker_got_is_taken_off_what_is_left_to_it() -> None:
    mailbox = opened(100, workers=2)
    mailbox.submit(segments(1, 1))
    assert len(mailbox.take(0, 9, wait=False, demand=3) or []) == 2
    mailbox.submit(segments(1, 1))
    assert len(mailbox.take(1, 9, wait=False, demand=3) or []) == 1


@pytest.mark.parametrize(("room", "tokens"), [(1, 100), (9, 4)], ids=["no room for more", "all tokens it wanted"])
def test_nothing_is_left_to_a_taker_that_has_its_fill(room: int, tokens: int) -> None:
    mailbox = opened(100, workers=2)
    mailbox.submit(segments(4, 4))
    assert len(mailbox.take(0, room, wait=False, demand=3, source_tokens=tokens) or []) == 1
    assert len(mailbox.take(1, 9, wait=False, demand=3) or []) == 1


def test_a_taker_that_will_be_long_at_what_it_got_leaves_what_comes_to_the_others() -> None:
    mailbox = opened(1_000, workers=2)
    mailbox.submit(segments(96))
    assert len(mailbox.take(0, 9, wait=False, demand=3) or []) == 1
    mailbox.submit(segments(1))
    assert mailbox.take(1, 9, wait=False, demand=3) == []
    assert len(mailbox.take(0, 9, wait=False, demand=3) or []) == 1
    mailbox.submit(segments(97))
    assert len(mailbox.take(0, 9, wait=False, demand=3) or []) == 1
    mailbox.submit(segments(1))
    assert len(mailbox.take(1, 9, wait=False, demand=3) or []) == 1


def test_a_closed_mailbox_refuses_and_still_gives() -> None:
    mailbox = opened(10)
    mailbox.submit(segments(1))
    mailbox.close()
    mailbox.close()
    with pytest.raises(DrainingError):
        mailbox.submit(segments(1))
    assert len(mailbox.take(0, 1, wait=False) or []) == 1


def test_a_stopped_mailbox_gives_nothing_more() -> None:
    mailbox = opened(10)
    mailbox.submit(segments(1))
    mailbox.stop()
    assert mailbox.take(0, 1, wait=False) is None
    assert mailbox.take(0, 1, wait=True) is None


def test_failure_ends_what_waits_and_refuses_what_comes() -> None:
    mailbox, told = opened(10), []
    running, waiting, withdrawn = segments(1, 1, 1, on_progress=told.append)
    mailbox.submit([running, waiting, withdrawn])
    mailbox.take(0, 1, wait=False)
    mailbox.cancel([withdrawn])
    failure = InternalError("broken")
    mailbox.fail(failure)
    assert told == [waiting]
    assert waiting.error is failure
    assert running.error is withdrawn.error is None
    assert (len(mailbox.waiting), mailbox.waiting.load.source_tokens, mailbox.unfinished) == (0, 0, 1)
    for _ in range(2):
        with pytest.raises(InternalError, match="broken") as caught:
            mailbox.submit(segments(1))
        assert caught.value is failure
    assert len(caught.traceback) == 3  # this test, `submit` and what it asks, not those of earlier callers too


def test_a_failed_mailbox_stays_failed_when_it_is_closed() -> None:
    mailbox = opened(10)
    mailbox.fail(InternalError("broken"))
    mailbox.close()
    with pytest.raises(InternalError):
        mailbox.submit(segments(1))


def test_a_closed_mailbox_that_fails_still_says_that_it_was_closed() -> None:
    """The threads of an engine end with a failure of the mailbox, at a shutdown too."""
    mailbox = opened(10)
    mailbox.close()
    mailbox.fail(InternalError("the engine has stopped"))
    with pytest.raises(DrainingError):
        mailbox.submit(segments(1))


def test_without_a_loop_progress_is_told_at_once() -> None:
    mailbox, told = opened(10), []
    [segment] = segments(1, on_progress=told.append)
    mailbox.submit([segment])
    mailbox.deliver([segment])
    assert told == [segment]
    assert mailbox.unfinished == 1  # progress is no end


def test_a_listener_may_use_the_mailbox() -> None:
    mailbox = opened(10)
    later = segments(1)
    [segment] = segments(1, on_progress=lambda _: mailbox.submit(later))
    mailbox.submit([segment])
    finish(mailbox, *(mailbox.take(0, 1, wait=False) or []))
    assert mailbox.take(0, 1, wait=False) == later


def test_a_faulty_listener_keeps_the_news_from_nobody_else() -> None:
    mailbox, told = opened(10), []

    def stumble(_: Decode) -> None:
        raise LookupError("stumbled")

    faulty, sound = segments(1, 1)
    faulty.on_progress, sound.on_progress = stumble, told.append
    mailbox.submit([faulty, sound])
    with pytest.raises(LookupError, match="stumbled"):
        finish(mailbox, *(mailbox.take(0, 2, wait=False) or []))
    assert told == [sound]
    assert mailbox.unfinished == 0


async def test_a_faulty_listener_on_the_loop_is_the_loops_to_report() -> None:
    mailbox, told, faults = opened(10), asyncio.Queue[Decode](), []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))
    mailbox.bind(loop)

    def stumble(_: Decode) -> None:
        raise LookupError("stumbled")

    faulty, sound = segments(1, 1)
    faulty.on_progress, sound.on_progress = stumble, told.put_nowait
    mailbox.submit([faulty, sound])
    finish(mailbox, *(mailbox.take(0, 2, wait=False) or []))
    assert await told.get() is sound
    assert [type(fault) for fault in faults] == [LookupError]


async def test_progress_is_told_on_the_loop_in_order_with_one_wake_up() -> None:
    loop, mailbox, told = asyncio.get_running_loop(), opened(100), []
    mailbox.bind(loop)

    def note(segment: Decode) -> None:
        assert asyncio.get_running_loop() is loop
        assert threading.current_thread() is threading.main_thread()
        told.append(segment)

    all_of_them = segments(1, 1, 1, 1, on_progress=note)
    mailbox.submit(all_of_them)
    await asyncio.to_thread(mailbox.deliver, all_of_them[:3])
    await asyncio.to_thread(mailbox.deliver, all_of_them[3:])
    assert told == all_of_them
    mailbox.deliver(all_of_them)
    assert len(told) == 4  # not before the loop's next round ...
    await asyncio.sleep(0)
    assert len(told) == 8  # ... and all in that


async def test_older_news_on_their_way_show_an_end_already() -> None:
    mailbox, told = opened(100), []
    mailbox.bind(asyncio.get_running_loop())
    [segment] = segments(1, wants_deltas=True, on_progress=lambda segment: told.append(segment.finished))
    mailbox.submit([segment])
    mailbox.take(0, 1, wait=False)
    mailbox.deliver([segment])
    finish(mailbox, segment)
    await asyncio.sleep(0)
    assert told == [True, True]
    assert mailbox.unfinished == 0


async def test_cancellation_on_the_loop_overtakes_news_on_their_way() -> None:
    mailbox, told = opened(100), []
    mailbox.bind(asyncio.get_running_loop())
    first, second = segments(1, 1, on_progress=told.append)
    mailbox.submit([first, second])
    finish(mailbox, *(mailbox.take(0, 2, wait=False) or []))
    mailbox.cancel([first])
    await asyncio.sleep(0)
    assert told == [second]
    assert first.finish_reason is FinishReason.EOS
    assert mailbox.unfinished == 0


def test_news_for_a_closed_loop_are_dropped() -> None:
    mailbox, loop = opened(100), asyncio.new_event_loop()
    mailbox.bind(loop)
    [segment] = segments(1, on_progress=lambda _: pytest.fail("told"))
    mailbox.submit([segment])
    loop.close()
    finish(mailbox, *(mailbox.take(0, 1, wait=False) or []))
    assert mailbox.unfinished == 0


def busy(clock: Clock, mailbox: Mailbox, *lengths: int) -> list[Decode]:
    """Have an engine of one slot that takes a second for ten tokens, and all that waits wait behind a running one.

    Returns:
        What runs.
    """
    first, second, *others = segments(10, 10, *lengths, client="a", text_bytes=40)
    mailbox.submit([first, second, *others])
    assert mailbox.take(0, 1, wait=False) == [first]
    clock.now_s += 1.0
    finish(mailbox, first)
    assert mailbox.take(0, 1, wait=False) == [second]
    assert mailbox.admission.drained_per_second == pytest.approx(10)
    return [second]


def precheck(mailbox: Mailbox, text_bytes: int = 4, *, client: str = "a", **terms) -> None:
    mailbox.admission.precheck(RequestOptions(client=client, **terms), text_bytes)


def test_the_drain_rate_is_measured_while_more_waits_than_is_taken(clock: Clock) -> None:
    mailbox = opened(1_000)
    assert mailbox.admission.drained_per_second is None
    assert mailbox.admission.backlog_s == 0
    running = busy(clock, mailbox, 10, 20)
    assert mailbox.admission.backlog_s == pytest.approx(4)
    mailbox.take(0, 9, wait=False)  # and had room for more
    clock.now_s += 20.0
    finish(mailbox, *running)
    assert mailbox.admission.drained_per_second == pytest.approx(10)
    assert mailbox.admission.backlog_s == pytest.approx(3)


def test_the_rate_is_not_measured_while_one_of_the_takers_has_room(clock: Clock) -> None:
    mailbox = opened(1_000, workers=2)
    mailbox.submit(segments(*[10] * 20))
    taken = mailbox.take(0, 1, wait=False) or []
    clock.now_s += 1.0
    finish(mailbox, *taken)
    assert mailbox.admission.drained_per_second is None
    taken = [*(mailbox.take(0, 1, wait=False) or []), *(mailbox.take(1, 1, wait=False) or [])]
    clock.now_s += 1.0
    finish(mailbox, *taken)
    assert mailbox.admission.drained_per_second == pytest.approx(20)


def test_withdrawn_segments_are_not_drained(clock: Clock) -> None:
    mailbox = opened(1_000)
    busy(clock, mailbox, 10)
    late = segments(500, client="a")
    mailbox.submit(late)
    mailbox.cancel(late)
    assert mailbox.admission.backlog_s == pytest.approx(2)
    assert mailbox.admission.drained_per_second == pytest.approx(10)


def test_the_rate_is_not_measured_once_all_that_waited_is_withdrawn(clock: Clock) -> None:
    mailbox = opened(1_000)
    running = busy(clock, mailbox)
    late = segments(10, 10, client="a")
    mailbox.submit(late)
    assert mailbox.take(0, 0, wait=False) == []  # it has all that it can take
    mailbox.cancel(late)
    clock.now_s += 20.0
    finish(mailbox, *running)
    assert mailbox.admission.drained_per_second == pytest.approx(10)


def test_a_request_is_judged_by_the_size_of_its_texts(clock: Clock) -> None:
    mailbox = opened(100)
    busy(clock, mailbox, *[10] * 8)
    precheck(mailbox, 80)  # twenty tokens, as those before it say
    with pytest.raises(QueueFullError) as caught:
        precheck(mailbox, 88)
    assert caught.value.metadata["request_source_tokens"] == "22"
    assert caught.value.retry_delay_s == pytest.approx(0.3)


def test_bytes_are_bounded_too(clock: Clock) -> None:
    mailbox = Mailbox(10_000, limit_text_bytes=100)
    mailbox.register_worker()
    busy(clock, mailbox, 10, 10)
    with pytest.raises(QueueFullError, match="80 bytes of text wait"):
        precheck(mailbox, 21)
    with pytest.raises(QueueFullError, match="80 bytes of text wait"):
        mailbox.submit(segments(1, client="a", text_bytes=21))
    precheck(mailbox, 20)


def test_a_full_queue_takes_what_another_client_sends() -> None:
    mailbox = opened(100)
    mailbox.submit(segments(*[10] * 10, client="a"))
    with pytest.raises(QueueFullError):
        mailbox.submit(segments(1, client="a"))
    mailbox.submit(segments(10, client="b"))
    mailbox.submit(segments(1, client="a", priority=Priority.BULK))


def test_the_delay_promised_is_kept_to_those_who_have_segments_waiting(clock: Clock) -> None:
    mailbox = Mailbox(10_000, max_delay_s=5.0)
    mailbox.register_worker()
    busy(clock, mailbox, *[10] * 4)
    precheck(mailbox)
    mailbox.submit(segments(10, client="a"))
    with pytest.raises(OverloadedError) as caught:
        precheck(mailbox)
    assert caught.value.retry_delay_s == pytest.approx(1.0)
    precheck(mailbox, priority=Priority.BULK)
    precheck(mailbox, client="b")


def test_very_many_clients_delay_a_newcomer_too(clock: Clock) -> None:
    mailbox = Mailbox(10_000, max_delay_s=5.0)
    mailbox.register_worker()
    busy(clock, mailbox)
    for number in range(6):
        mailbox.submit(segments(10, client=f"{number}"))
    with pytest.raises(OverloadedError):
        precheck(mailbox, client="b")


def test_a_deadline_is_judged_by_what_goes_first(clock: Clock) -> None:
    mailbox = opened(10_000)
    busy(clock, mailbox, *[10] * 100)
    with pytest.raises(DeadlineUnreachableError):
        precheck(mailbox, deadline_s=clock.now_s + 100.0)
    precheck(mailbox, deadline_s=clock.now_s + 140.0)
    precheck(mailbox, client="b", deadline_s=clock.now_s + 8.0)
    with pytest.raises(DeadlineUnreachableError):
        precheck(mailbox, client="b", priority=Priority.BULK, text_bytes=400, deadline_s=clock.now_s + 100.0)


def test_what_runs_counts_before_a_deadline(clock: Clock) -> None:
    mailbox = opened(10_000)
    busy(clock, mailbox, 10)  # ten tokens run and ten wait: 2.1 s with one more, and a quarter of that to spare
    with pytest.raises(DeadlineUnreachableError):
        precheck(mailbox, deadline_s=clock.now_s + 2.0)
    precheck(mailbox, deadline_s=clock.now_s + 2.7)


def test_a_stranger_s_long_segments_make_no_deadline_unreachable(clock: Clock) -> None:
    mailbox = opened(100_000)
    finish(mailbox, *busy(clock, mailbox))
    mailbox.submit(segments(*[250] * 100, client="a", priority=Priority.BULK))
    mailbox.take(0, 8, wait=False)
    assert mailbox.admission.backlog_s == pytest.approx(2_500)
    precheck(mailbox, client="b", deadline_s=clock.now_s + 2.0)
    with pytest.raises(DeadlineUnreachableError):
        precheck(mailbox, client="a", priority=Priority.BULK, deadline_s=clock.now_s + 2.0)


def test_what_one_client_has_waiting_refuses_no_other() -> None:
    mailbox = Mailbox(200, limit_text_bytes=1_000, max_delay_s=1.0)
    mailbox.register_worker()
    mailbox.submit(segments(*[10] * 200, client="a", priority=Priority.BULK, text_bytes=40))  # let in while it was idle
    with mailbox.admission.reserve(RequestOptions(client="a", priority=Priority.BULK), 1_000_000):
        for priority in Priority:
            precheck(mailbox, client="b", priority=priority)
        mailbox.submit(segments(10, client="b", text_bytes=40))
        precheck(mailbox, 1_000_000, client="c")
        with pytest.raises(QueueFullError):
            precheck(mailbox, priority=Priority.BULK)


def test_texts_that_were_let_in_count_as_waiting_of_their_client_until_they_have_come() -> None:
    mailbox = opened(100)
    mailbox.submit(segments(10, client="a", text_bytes=40))
    terms = RequestOptions(client="a")
    with mailbox.admission.reserve(terms, 320) as promise:  # eighty tokens, as those before it say
        precheck(mailbox, 40)
        with pytest.raises(QueueFullError) as caught:
            precheck(mailbox, 44)
        assert caught.value.metadata["client_source_tokens"] == "90"
        mailbox.submit(segments(80, client="a", text_bytes=320), let_in=True)
        promise.text_bytes = 0
        precheck(mailbox, 40)
        with pytest.raises(QueueFullError):
            mailbox.submit(segments(11, client="a"), let_in=True)
    precheck(mailbox, 40)


def test_who_was_let_in_with_much_is_screened_between_two_portions_too() -> None:
    mailbox = opened(100)
    mailbox.submit(segments(10, client="a", text_bytes=40))
    finish(mailbox, *(mailbox.take(0, 1, wait=False) or []))
    assert mailbox.unfinished == 0
    with mailbox.admission.reserve(RequestOptions(client="a"), 400):
        with pytest.raises(QueueFullError):
            precheck(mailbox)
        precheck(mailbox, client="b")
    precheck(mailbox)


def test_the_backlog_has_what_was_let_in_and_has_not_come(clock: Clock) -> None:
    mailbox = opened(10_000)
    busy(clock, mailbox, 10)
    with mailbox.admission.reserve(RequestOptions(client="a"), 400):
        assert mailbox.admission.backlog_s == pytest.approx(12)
    assert mailbox.admission.backlog_s == pytest.approx(2)


def test_nobody_is_refused_while_the_engine_is_idle(clock: Clock) -> None:
    mailbox = Mailbox(10, limit_text_bytes=10, max_delay_s=0.001)
    mailbox.register_worker()
    finish(mailbox, *busy(clock, mailbox))
    precheck(mailbox, 1_000_000, deadline_s=clock.now_s + 0.001)


def test_before_any_measurement_nobody_is_refused_for_time() -> None:
    mailbox = Mailbox(10_000, max_delay_s=0.001)
    mailbox.register_worker()
    mailbox.submit(segments(*[10] * 100, client="a"))
    precheck(mailbox, deadline_s=0.0)


def test_a_closed_mailbox_says_so_to_who_is_screened() -> None:
    mailbox = opened(10)
    mailbox.close()
    with pytest.raises(DrainingError):
        precheck(mailbox)


def test_clients_are_served_in_turn_and_priorities_first() -> None:
    mailbox = opened(10_000)
    bulk, crowd = segments(*[10] * 20, client="a", priority=Priority.BULK), segments(*[10] * 20, client="b")
    mailbox.submit(bulk)
    mailbox.submit(crowd)
    [alone] = segments(10, client="c")
    mailbox.submit([alone])
    assert mailbox.waiting.clients == 3
    assert mailbox.waiting.source_tokens_of(Priority.BULK) == 200
    taken = mailbox.take(0, 5, wait=False) or []
    assert alone in taken
    assert not set(taken) & set(bulk)


def test_strangers_are_taken_beside_what_a_thread_holds() -> None:
    mailbox, held = opened(1_000), FairQueue()
    crowd, alone = segments(10, 10, client="a"), segments(10, client="b")
    held.push(segments(10, client="a"))
    mailbox.submit(crowd)
    mailbox.submit(alone)
    assert mailbox.take_new(3, held) == alone
    finish(mailbox, *alone)
    assert (len(mailbox.waiting), mailbox.unfinished) == (2, 2)


def test_what_was_let_in_before_needs_no_room() -> None:
    mailbox = opened(10)
    mailbox.submit(segments(10))
    mailbox.submit(segments(5), again=True)
    assert mailbox.waiting.load.source_tokens == 15
