"""The static batcher over a real mailbox; its batches are translated by a function of these tests."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from bench.peers.static_batcher import StaticBatcher
from bench.sentences import Sentences
from dragoman.errors import DeadlineExceededError, InternalError
from service.decode import Decode, FinishReason
from service.queue.mailbox import Mailbox
from tests.idle import wait_idle

PATIENCE_S = 30.0


class Backwards:
    """Translates a sentence to its reverse, and keeps the batches; waits at the gate, once it is closed."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int]] = []  # sentences, limit
        self.started = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, sentences: Sentences) -> list[list[int]]:
        self.batches.append((len(sentences), max(sentences.limits)))
        self.started.release()
        assert self.gate.wait(PATIENCE_S)
        return [ids[-2::-1] for ids in sentences.sources]


@pytest.fixture
def translate() -> Backwards:
    return Backwards()


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox(1000)


Start = Callable[..., StaticBatcher]


@pytest.fixture
def start(mailbox: Mailbox, translate: Backwards) -> Iterator[Start]:
    batchers = []

    def make(size: int = 4, wait_s: float = 0.0, workers: int = 1) -> StaticBatcher:
        batchers.append(StaticBatcher(mailbox, translate, size=size, wait_s=wait_s, workers=workers))
        batchers[-1].start()
        return batchers[-1]

    yield make
    translate.gate.set()
    for batcher in batchers:
        batcher.stop()


def segment(*ids: int, limit: int = 9, deadline_s: float | None = None) -> Decode:
    return Decode([*ids, 2], limit, deadline_s=deadline_s)


@pytest.mark.parametrize("workers", [1, 2])
def test_everybody_gets_the_translation_of_his_own(
    mailbox: Mailbox, translate: Backwards, start: Start, workers: int
) -> None:
    segments = [segment(*range(10, 11 + place)) for place in range(30)]
    mailbox.submit(segments[:7])
    start(workers=workers)
    mailbox.submit(segments[7:])
    assert wait_idle(mailbox, PATIENCE_S)
    for one in segments:
        expected = one.source_ids[-2::-1]
        assert one.target_ids == expected[:9]
        assert one.finish_reason is (FinishReason.LENGTH if len(expected) >= 9 else FinishReason.EOS)
    assert sum(size for size, _ in translate.batches) == 30
    assert max(size for size, _ in translate.batches) <= 4


def test_a_batch_is_as_large_as_allowed_and_has_the_largest_limit(
    mailbox: Mailbox, translate: Backwards, start: Start
) -> None:
    mailbox.submit([segment(5, limit=3), segment(6, limit=7), segment(7, limit=5)])
    start(size=2)
    assert wait_idle(mailbox, PATIENCE_S)
    assert translate.batches == [(2, 7), (1, 5)]


def test_a_batch_waits_for_others_until_it_is_full(mailbox: Mailbox, translate: Backwards, start: Start) -> None:
    start(size=3, wait_s=PATIENCE_S)
    for token in (5, 6, 7):
        mailbox.submit([segment(token)])
    assert wait_idle(mailbox, PATIENCE_S)
    assert translate.batches == [(3, 9)]


def test_a_batch_that_nobody_joins_runs_after_its_wait(mailbox: Mailbox, translate: Backwards, start: Start) -> None:
    start(size=3, wait_s=0.01)
    alone = segment(5)
    mailbox.submit([alone])
    assert wait_idle(mailbox, PATIENCE_S)
    assert translate.batches == [(1, 9)]
    assert alone.first_token_s is not None
    assert alone.submitted_s is not None
    assert alone.first_token_s - alone.submitted_s >= 0.01


def test_what_is_cancelled_or_too_late_before_its_batch_is_not_translated(
    mailbox: Mailbox, translate: Backwards, start: Start
) -> None:
    translate.gate.clear()
    start(size=1)
    running, cancelled = segment(5), segment(6)
    mailbox.submit([running])
    assert translate.started.acquire(timeout=PATIENCE_S)
    late = segment(7, deadline_s=time.monotonic())
    mailbox.submit([cancelled, late])
    mailbox.cancel([cancelled])
    translate.gate.set()
    assert wait_idle(mailbox, PATIENCE_S)
    assert len(translate.batches) == 1
    assert cancelled.finish_reason is FinishReason.CANCELLED
    assert isinstance(late.error, DeadlineExceededError)
    assert running.target_ids == [5]


def test_what_is_cancelled_or_expires_in_a_batch_ends_with_it_and_its_neighbours_get_theirs(
    mailbox: Mailbox, translate: Backwards, start: Start
) -> None:
    translate.gate.clear()
    cancelled, late, kept = segment(5), segment(6, deadline_s=time.monotonic() + 0.2), segment(7)
    mailbox.submit([cancelled, late, kept])
    start()
    assert translate.started.acquire(timeout=PATIENCE_S)
    mailbox.cancel([cancelled])
    assert late.deadline_s is not None
    while time.monotonic() < late.deadline_s:
        time.sleep(0.01)
    translate.gate.set()
    assert wait_idle(mailbox, PATIENCE_S)
    if translate.batches == [(3, 9)]:  # else the machine slept through the deadline before the batch began
        assert cancelled.finish_reason is FinishReason.CANCELLED
    assert isinstance(late.error, DeadlineExceededError)
    assert kept.target_ids == [7]


def test_stopped_it_ends_well_and_fails_what_waits(mailbox: Mailbox, translate: Backwards, start: Start) -> None:
    translate.gate.clear()
    batcher = start(size=1, workers=2)
    running, waiting = [segment(5), segment(6)], segment(7)
    mailbox.submit([*running, waiting])
    for _ in running:
        assert translate.started.acquire(timeout=PATIENCE_S)
    mailbox.stop()
    translate.gate.set()
    assert batcher.ended.result(PATIENCE_S) is None
    assert [one.target_ids for one in running] == [[5], [6]]
    assert isinstance(waiting.error, InternalError)
    assert mailbox.unfinished == 0


def test_a_failure_ends_it_and_everybody_is_answered(mailbox: Mailbox) -> None:
    def fail(sentences: Sentences) -> list[list[int]]:
        raise RuntimeError("planted")

    batcher = StaticBatcher(mailbox, fail, size=1, wait_s=0.0, workers=1)
    segments = [segment(5), segment(6)]
    mailbox.submit(segments)
    batcher.start()
    with pytest.raises(RuntimeError, match="planted"):
        batcher.ended.result(PATIENCE_S)
    assert all(isinstance(one.error, InternalError) for one in segments)
    assert mailbox.unfinished == 0
