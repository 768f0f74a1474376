"""Who is let into a queue by what is known of it; the clock is the test's."""

import threading

import pytest

from dragoman.errors import DeadlineUnreachableError, DrainingError, OverloadedError, QueueFullError
from service.decode import Decode
from service.options import RequestOptions
from service.queue.admission import Admission
from service.queue.admission_rules import QueueLimits
from service.queue.fair_queue import FairQueue
from tests.unit.service.queue.conftest import Clock

LIMIT = 1_000


class Queue:
    """A queue and its admission, and what an owner of both does."""

    def __init__(self, max_delay_s: float = 0.0) -> None:
        self.waiting = FairQueue()
        self.admission = Admission(QueueLimits(LIMIT, None, max_delay_s), self.waiting, threading.Lock(), lambda: True)

    def come(self, *decodes: Decode) -> None:
        self.admission.admit(decodes, let_in=False, again=False)
        self.waiting.push(decodes)

    def run_one(self, clock: Clock, seconds: float) -> None:
        """Take the next and end it after a while; there is always more, as for an engine that has all it can take."""
        taken = self.waiting.take(1)
        self.admission.note_taken(taken)
        clock.now_s += seconds
        self.admission.note_ends(taken)


def decodes(count: int, client: str = "a", tokens: int = 10) -> list[Decode]:
    return [Decode([5] * tokens, 8, client=client, text_bytes=tokens * 4) for _ in range(count)]


def measured(clock: Clock, max_delay_s: float = 0.0) -> Queue:
    """Ten tokens a second, and 100 that wait."""
    queue = Queue(max_delay_s)
    queue.come(*decodes(12))
    for _ in range(2):
        queue.run_one(clock, 1.0)
    return queue


def test_an_empty_queue_refuses_nothing_whatever_its_size(clock: Clock) -> None:
    Queue().admission.precheck(RequestOptions(deadline_s=0.0), 10**9)


def test_the_rate_is_what_was_finished_while_there_was_more(clock: Clock) -> None:
    queue = measured(clock)
    assert queue.admission.drained_per_second == pytest.approx(10)
    assert queue.admission.backlog_s == pytest.approx(10)


def test_a_request_that_would_be_late_is_refused_and_one_that_would_not_is_not(clock: Clock) -> None:
    queue = measured(clock)
    queue.admission.precheck(RequestOptions(client="a", deadline_s=clock.now_s + 60), 40)
    with pytest.raises(DeadlineUnreachableError):
        queue.admission.precheck(RequestOptions(client="a", deadline_s=clock.now_s + 5), 40)


def test_a_request_that_would_wait_longer_than_is_promised_is_refused(clock: Clock) -> None:
    measured(clock, max_delay_s=60).admission.precheck(RequestOptions(client="a"), 40)
    with pytest.raises(OverloadedError):
        measured(clock, max_delay_s=5).admission.precheck(RequestOptions(client="a"), 40)


def test_what_is_reserved_counts_as_waiting_of_its_client_until_it_has_come(clock: Clock) -> None:
    queue = measured(clock)
    with queue.admission.reserve(RequestOptions(client="a"), LIMIT * 4) as reservation:
        with pytest.raises(QueueFullError):
            queue.admission.precheck(RequestOptions(client="a"), 400)
        queue.admission.admit(decodes(1), let_in=True, again=False)  # it is of that call
        reservation.text_bytes = 0
        queue.admission.precheck(RequestOptions(client="a"), 400)


def test_a_closed_queue_says_why_and_the_first_reason_stays(clock: Clock) -> None:
    queue = Queue()
    queue.admission.close(DrainingError("first"))
    queue.admission.close(DrainingError("second"))
    with pytest.raises(DrainingError, match="first"):
        queue.admission.precheck(RequestOptions(), 1)
    with pytest.raises(DrainingError, match="first"):
        queue.come(*decodes(1))


def test_what_has_been_here_before_needs_no_room(clock: Clock) -> None:
    queue = Queue()
    queue.come(*decodes(1, tokens=LIMIT))
    with pytest.raises(QueueFullError):
        queue.admission.admit(decodes(1, tokens=LIMIT), let_in=False, again=False)
    queue.admission.admit(decodes(1, tokens=LIMIT), let_in=False, again=True)
