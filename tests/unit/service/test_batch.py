"""One decode batch on the synthetic model, step by step."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from dragoman.errors import DeadlineExceededError, InternalError
from service.batch import DecodeBatch
from service.graphs import DecoderSession, DecoderStep, EncoderSession
from service.invariants import violations
from service.mailbox import Mailbox
from service.metrics import Metrics
from service.request import FinishReason, Segment, SegmentStatus
from service.scheduler import ENCODE_TOKENS
from tests.synthetic import MAX_TARGET_TOKENS, Synthetic

EXPIRED_S = 0.0  # on the clock of time.monotonic, which is past it


class House(NamedTuple):
    """A batch and what it works with."""

    mailbox: Mailbox
    metrics: Metrics
    batch: DecodeBatch

    def submit(self, *segments: Segment) -> None:
        self.mailbox.submit(segments)

    def step(self) -> None:
        assert self.batch.step(wait=False)
        assert violations(self.batch.snapshot()) == []

    def exhaust(self) -> None:
        for _ in range(10 * MAX_TARGET_TOKENS):
            if not self.mailbox.unfinished:
                return
            self.step()
        pytest.fail("a segment never ends")

    def metric(self, name: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"dragoman_{name}")


class Sessions(NamedTuple):
    """Loaded once."""

    synthetic: Synthetic
    encoder: EncoderSession
    decoder: DecoderSession

    def house(self, slots: int) -> House:
        mailbox, metrics = Mailbox(10_000), Metrics()
        manifest = self.synthetic.bundle.manifest
        batch = DecodeBatch(manifest, self.encoder, self.decoder, mailbox, metrics, slots=slots, sharers=1)
        return House(mailbox, metrics, batch)

    def long(self, count: int) -> list[list[int]]:
        """Sources whose translations take many steps."""
        candidates = ([first, second, 2] for first in range(3, 400) for second in range(3, 400))
        return [source for source, _ in zip(filter(self._is_long, candidates), range(count), strict=False)]

    def _is_long(self, source: list[int]) -> bool:
        return len(self.alone(source)) >= 8

    def alone(self, source: list[int]) -> list[int]:
        house, segment = self.house(slots=1), Segment(source, MAX_TARGET_TOKENS)
        house.submit(segment)
        house.exhaust()
        return segment.target_ids


@pytest.fixture(scope="module")
def sessions(fp32: Synthetic) -> Sessions:
    return Sessions(fp32, EncoderSession(fp32.bundle, "cpu"), DecoderSession(fp32.bundle, "cpu"))


@pytest.fixture(scope="module")
def sources(sessions: Sessions) -> list[list[int]]:
    return sessions.long(4)


@pytest.fixture
def house(sessions: Sessions) -> House:
    return sessions.house(slots=3)


def test_a_segment_joins_between_two_steps(house: House, sources: list[list[int]]) -> None:
    early, late = Segment(sources[0], 8), Segment(sources[1], 8)
    house.submit(early)
    house.step()
    house.submit(late)
    house.step()
    assert (len(early.target_ids), len(late.target_ids)) == (2, 1)
    assert house.batch.active == 2
    house.exhaust()
    assert house.batch.active == 0


def test_a_slot_is_taken_again_before_the_next_step(sessions: Sessions, sources: list[list[int]]) -> None:
    house = sessions.house(slots=1)
    first, second = Segment(sources[0], 1), Segment(sources[1], 2)
    house.submit(first, second)
    house.step()
    assert first.finish_reason is FinishReason.LENGTH
    house.step()
    assert len(second.target_ids) == 1
    house.step()
    assert second.finished
    assert house.metric("decode_batch_slots_count") == house.metric("decode_batch_slots_sum") == 3


def test_nothing_to_do_is_a_step_without_a_run(house: House) -> None:
    house.step()
    assert house.metric("decode_step_duration_seconds_count") == 0


def test_a_stopped_mailbox_ends_the_steps(house: House) -> None:
    house.mailbox.stop()
    assert not house.batch.step(wait=True)


def test_deltas_are_told_after_each_token_and_the_end_once(house: House, sources: list[list[int]]) -> None:
    told: list[tuple[int, bool]] = []
    segment = Segment(
        sources[0],
        3,
        wants_deltas=True,
        on_progress=lambda segment: told.append((len(segment.target_ids), segment.finished)),
    )
    house.submit(segment)
    house.exhaust()
    assert told == [(1, False), (2, False), (3, True)]


def test_a_cancelled_segment_leaves_before_the_next_token(house: House, sources: list[list[int]]) -> None:
    stays, leaves = Segment(sources[0], 8), Segment(sources[1], 8)
    house.submit(leaves, stays)
    house.step()
    house.mailbox.cancel([leaves])
    house.step()
    assert (leaves.status, len(leaves.target_ids)) == (SegmentStatus.CANCELLED, 1)
    assert house.batch.active == 1
    house.exhaust()
    assert len(stays.target_ids) == 8


def test_a_segment_past_its_deadline_is_not_even_encoded(house: House, sources: list[list[int]]) -> None:
    told: list[Segment] = []
    segment = Segment(sources[0], 8, deadline_s=EXPIRED_S, on_progress=told.append)
    house.submit(segment)
    house.step()
    assert isinstance(segment.error, DeadlineExceededError)
    assert told == [segment]
    assert house.mailbox.unfinished == 0
    assert house.metric("encode_duration_seconds_count") == 0


def test_the_metrics_follow(house: House, sources: list[list[int]]) -> None:
    assert house.metric("slots") == 3
    snapshot = house.batch.snapshot()
    assert (snapshot.slots, snapshot.target_capacity) == (3, MAX_TARGET_TOKENS)
    assert house.metric("kv_cache_bytes") > 0
    house.submit(Segment(sources[0], 2), Segment(sources[1], 1))
    house.step()
    assert house.metric("slots_active") == 1
    house.step()
    assert house.metric("slots_active") == 0
    assert house.metric("source_tokens_total") == len(sources[0]) + len(sources[1])
    assert house.metric("target_tokens_total") == 3
    assert house.metric("queue_duration_seconds_count") == 2
    assert house.metric("decode_step_duration_seconds_count") == 2


class PlantedError(Exception):
    """What a test makes a run raise."""


@contextmanager
def failing_decoder() -> Iterator[None]:
    """Every run is complete, the buffers are written, and then it fails."""
    run = DecoderStep.run

    def fail(step: DecoderStep, rows: int) -> None:
        run(step, rows)
        raise PlantedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DecoderStep, "run", fail)
        with pytest.raises(PlantedError):
            yield


def test_a_failed_step_shows_nothing_and_can_be_run_again(
    sessions: Sessions, house: House, sources: list[list[int]]
) -> None:
    segments = [Segment(source, MAX_TARGET_TOKENS) for source in sources[:3]]
    house.submit(*segments[:2])
    house.step()
    before = house.batch.snapshot()
    house.submit(segments[2])
    with failing_decoder():
        house.step()
    after = house.batch.snapshot()
    assert (after.active, after.lengths) == (segments, [*before.lengths, 0])
    assert violations(after) == []
    house.exhaust()
    assert [segment.target_ids for segment in segments] == [sessions.alone(source) for source in sources[:3]]


def test_failure_answers_everyone_in_a_slot(house: House, sources: list[list[int]]) -> None:
    told: list[Segment] = []
    segments = [Segment(source, 8, on_progress=told.append) for source in sources[:3]]
    house.submit(*segments)
    with failing_decoder():
        house.step()
    failure = InternalError("broken")
    house.batch.fail(failure)
    house.batch.fail(failure)  # again: nothing is left
    assert sorted(map(id, told)) == sorted(map(id, segments))
    assert {segment.error for segment in segments} == {failure}
    assert house.mailbox.unfinished == house.batch.active == house.metric("slots_active") == 0


def test_failure_answers_also_who_is_on_the_way_to_a_slot(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder fails at its second micro-batch: some are in slots, some are not."""
    length = 25
    count = ENCODE_TOKENS // length + 2
    house, told = sessions.house(slots=count), list[Segment]()
    encode, calls = EncoderSession.encode, []

    def fail_second(encoder: EncoderSession, sources: list[list[int]]) -> object:
        calls.append(len(sources))
        if len(calls) == 2:
            raise PlantedError
        return encode(encoder, sources)

    monkeypatch.setattr(EncoderSession, "encode", fail_second)
    segments = [Segment([5] * (length - 1) + [2], 8, on_progress=told.append) for _ in range(count)]
    expired = Segment([2], 8, deadline_s=EXPIRED_S, on_progress=told.append)
    house.submit(expired, *segments[:-1])
    with pytest.raises(PlantedError):
        house.batch.step(wait=False)
    assert house.batch.active == calls[0] > 0
    assert sum(calls) == count - 1
    house.batch.fail(InternalError("broken"))
    assert sorted(map(id, told)) == sorted(map(id, [expired, *segments[:-1]]))
    assert isinstance(expired.error, DeadlineExceededError)
    assert house.mailbox.unfinished == house.batch.active == house.metric("slots_active") == 0


def test_an_idle_batch_holds_nobodys_segment(house: House, sources: list[list[int]]) -> None:
    class Listener:
        def note(self, segment: Segment) -> None:
            pass

    listener = Listener()
    gone = weakref.ref(listener)
    house.submit(Segment(sources[0], 1, on_progress=listener.note))
    house.exhaust()
    del listener
    gc.collect()
    assert gone() is None
