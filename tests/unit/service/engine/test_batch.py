"""One decode batch on the synthetic model, step by step."""

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from structlog.testing import capture_logs

from dragoman.errors import DeadlineExceededError, InternalError, TextFailedError
from plugins.beam.beam import Beam
from plugins.beam.search import Search
from plugins.sampling import sampling
from service.decode import Decode, DecodeStatus, FinishReason
from service.engine import batch
from service.engine.batch import DecodeBatch
from service.engine.encoder_cache import EncoderMemoryCache
from service.engine.graphs import Graphs
from service.engine.runner import Runner
from service.options import Decoding, Priority, Sampling
from service.queue.fair_queue import BULK_SHARE
from service.queue.mailbox import Mailbox
from service.runtime.host import RUN_SIZE, DecoderSession, EncoderSession
from service.runtime.slots import DecoderStep
from service.telemetry.metrics import Metrics
from tests.engine_harness import OpenBatch
from tests.invariants import snapshot_of, violations
from tests.synthetic import MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS, Synthetic

EXPIRED_S = 0.0  # on the clock of time.monotonic, which is past it


class DrivenBatch(NamedTuple):
    """A batch and what it works with."""

    mailbox: Mailbox
    metrics: Metrics
    opened: OpenBatch

    @property
    def batch(self) -> DecodeBatch:
        return self.opened.batch

    def submit(self, *segments: Decode) -> None:
        self.mailbox.submit(segments)

    def step(self) -> None:
        assert self.batch.step(wait=False)
        assert violations(snapshot_of(self.batch)) == []

    def exhaust(self) -> None:
        for _ in range(10 * MAX_TARGET_TOKENS):
            if not self.mailbox.unfinished:
                return
            self.step()
        pytest.fail("a segment never ends")

    def metric(self, name: str, **labels: str) -> float | None:
        return self.metrics.total(name, **labels)

    def failed_runs(self) -> dict[str, float | None]:
        return {graph: self.metric("failed_runs_total", graph=graph) for graph in ("encoder", "decoder")}


class Sessions(NamedTuple):
    """Loaded once."""

    synthetic: Synthetic
    encoder: EncoderSession
    decoder: DecoderSession

    def driven(self, slots: int, room: int = 10_000, cache_bytes: int = 0) -> DrivenBatch:
        mailbox, metrics = Mailbox(room), Metrics()
        manifest, cache = self.synthetic.bundle.manifest, EncoderMemoryCache(cache_bytes, metrics.of("m"))
        graphs = Graphs(self.encoder, self.decoder)
        return DrivenBatch(mailbox, metrics, OpenBatch(manifest, graphs, mailbox, metrics, slots=slots, cache=cache))

    def long(self, count: int) -> list[list[int]]:
        """Sources whose translations take many steps."""
        candidates = ([first, second, 2] for first in range(3, 400) for second in range(3, 400))
        return [source for source, _ in zip(filter(self._is_long, candidates), range(count), strict=False)]

    def _is_long(self, source: list[int]) -> bool:
        return len(self.alone(source)) >= 8

    def alone(self, source: list[int]) -> list[int]:
        driven, segment = self.driven(slots=1), Decode(source, MAX_TARGET_TOKENS)
        driven.submit(segment)
        driven.exhaust()
        return segment.target_ids


@pytest.fixture(scope="module")
def sessions(fp32: Synthetic) -> Sessions:
    return Sessions(fp32, EncoderSession(fp32.bundle), DecoderSession(fp32.bundle))


@pytest.fixture(scope="module")
def sources(sessions: Sessions) -> list[list[int]]:
    return sessions.long(4)


def asking(source: list[int], limit: int) -> Decode:
    return Decode(source, limit, decoding=Decoding(wants_log_probability=True))


@pytest.fixture
def driven(sessions: Sessions) -> DrivenBatch:
    return sessions.driven(slots=3)


def test_a_segment_joins_between_two_steps(driven: DrivenBatch, sources: list[list[int]]) -> None:
    early, late = Decode(sources[0], 8), Decode(sources[1], 8)
    driven.submit(early)
    driven.step()
    driven.submit(late)
    driven.step()
    assert (len(early.target_ids), len(late.target_ids)) == (2, 1)
    assert len(driven.batch.runner.scheduler.active) == 2
    driven.exhaust()
    assert len(driven.batch.runner.scheduler.active) == 0


def test_more_are_encoded_than_there_are_slots_and_admitted_in_order(
    sessions: Sessions, sources: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    driven, runs = sessions.driven(slots=1), list[int]()
    encode = EncoderSession.encode

    def counted(encoder: EncoderSession, sources: list[list[int]]) -> object:
        runs.append(len(sources))
        return encode(encoder, sources)

    monkeypatch.setattr(EncoderSession, "encode", counted)
    ended: list[Decode] = []
    segments = [Decode(source, 2, on_progress=ended.append) for source in sources]
    driven.submit(*segments)
    driven.step()
    assert (runs, len(driven.batch.runner.scheduler.active)) == ([len(sources)], 1)
    assert [segment.status for segment in segments[1:]] == [DecodeStatus.ENCODING] * (len(sources) - 1)
    driven.exhaust()
    assert ended == segments
    assert len(runs) == 1


def test_sources_that_are_known_divide_no_run_of_the_others(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven, runs = sessions.driven(slots=8, cache_bytes=1_000_000), list[list[int]]()
    known = [[token] * 8 + [2] for token in (5, 6, 7)]
    driven.submit(*(Decode(source, 1) for source in known))
    driven.exhaust()
    encode = EncoderSession.encode

    def noted(encoder: EncoderSession, sources: list[list[int]]) -> object:
        runs.append(list(map(len, sources)))
        return encode(encoder, sources)

    monkeypatch.setattr(EncoderSession, "encode", noted)
    # With the three others, 9 and 12 tokens would be a run each: four sources would be filled up.
    segments = [Decode(source, 3) for source in (*known, [8] * 8 + [2], [9] * 11 + [2])]
    driven.submit(*segments)
    driven.exhaust()
    assert runs == [[9, 12]]
    assert [segment.target_ids for segment in segments] == [
        sessions.alone(segment.source_ids)[:3] for segment in segments
    ]
    assert (driven.metric("encoder_memory_cache_hits_total"), driven.metric("encoder_memory_cache_misses_total")) == (
        3,
        5,
    )


def test_what_waits_encoded_is_let_go_when_cancelled_or_late(sessions: Sessions, sources: list[list[int]]) -> None:
    driven, told = sessions.driven(slots=1), list[Decode]()
    runs, cancelled, late = (Decode(source, 8, on_progress=told.append) for source in sources[:3])
    driven.submit(runs, cancelled, late)
    driven.step()
    driven.mailbox.cancel([cancelled])
    late.deadline_s = EXPIRED_S
    driven.step()
    assert (cancelled.finish_reason, late.finish_reason) == (FinishReason.CANCELLED, FinishReason.DEADLINE)
    assert told == [late]
    assert driven.mailbox.unfinished == 1
    driven.exhaust()
    assert runs.finish_reason is FinishReason.LENGTH


def test_a_segment_that_is_cancelled_or_late_once_it_is_encoded_gets_no_slot(
    driven: DrivenBatch, sources: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled, late, sound = (Decode(source, 2) for source in sources[:3])
    encode = EncoderSession.encode

    def end_meanwhile(encoder: EncoderSession, sources: list[list[int]]) -> object:
        driven.mailbox.cancel([cancelled])
        late.deadline_s = EXPIRED_S
        return encode(encoder, sources)

    monkeypatch.setattr(EncoderSession, "encode", end_meanwhile)
    driven.submit(cancelled, late, sound)
    driven.step()
    assert (cancelled.finish_reason, late.finish_reason) == (FinishReason.CANCELLED, FinishReason.DEADLINE)
    assert [len(segment.target_ids) for segment in (cancelled, late, sound)] == [0, 0, 1]
    assert driven.metric("decode_batch_slots_sum") == 1


def test_what_waits_encoded_is_answered_when_the_batch_fails(sessions: Sessions, sources: list[list[int]]) -> None:
    driven, told = sessions.driven(slots=1), list[Decode]()
    segments = [Decode(source, 8, on_progress=told.append) for source in sources]
    driven.submit(*segments)
    driven.step()
    driven.batch.fail(InternalError("broken"))
    assert sorted(map(id, told)) == sorted(map(id, segments))
    driven.step()
    assert (len(driven.batch.runner.scheduler.active), driven.mailbox.unfinished) == (0, 0)


@pytest.mark.parametrize("priority", Priority, ids=lambda priority: priority.name)
def test_one_client_s_thousands_do_not_keep_another_s_single_segment(
    sessions: Sessions, sources: list[list[int]], priority: Priority
) -> None:
    """Of 10,000 that wait, 32 are encoded: the newcomer has a slot before these, too."""
    driven = sessions.driven(slots=2, room=1_000_000)
    driven.submit(*(Decode(sources[number % 3], 2, client="a", priority=priority) for number in range(10_000)))
    for _ in range(5):
        driven.step()
    alone = Decode(sources[3], 2, client="b")
    driven.submit(alone)
    steps = 0
    while not alone.finished:
        driven.step()
        steps += 1
    # A client's turn of 32 source tokens is eleven of these segments, at two slots and two steps each.
    assert steps <= (2 + 2 if priority is Priority.BULK else 12 + 2)
    driven.batch.fail(InternalError("enough"))
    driven.mailbox.fail(InternalError("enough"))


def test_bulk_gets_its_share_of_a_batch_that_was_full_of_it(sessions: Sessions, sources: list[list[int]]) -> None:
    """What was encoded ahead while nobody else waited does not change the shares once others do."""
    driven, got = sessions.driven(slots=4, room=1_000_000), Counter[Priority]()

    def note(ended: Decode) -> None:
        got[ended.priority] += ended.cost

    def submit(client: str, count: int, priority: Priority) -> None:
        driven.submit(
            *(
                Decode(sources[number % 4], 2, on_progress=note, client=client, priority=priority)
                for number in range(count)
            )
        )

    submit("bulk", 1_000, Priority.BULK)
    for _ in range(5):
        driven.step()
    for number in range(40):
        submit(f"{number}", 50, Priority.INTERACTIVE)
    while got[Priority.INTERACTIVE] < 40 * 3 * 10:
        driven.step()
    got.clear()
    while got.total() < 2_000:
        driven.step()
    assert 0.8 <= got[Priority.BULK] * BULK_SHARE / got.total() <= 1.3
    driven.batch.fail(InternalError("enough"))
    driven.mailbox.fail(InternalError("enough"))


def test_fewer_are_encoded_ahead_where_several_clients_wait(sessions: Sessions, sources: list[list[int]]) -> None:
    driven = sessions.driven(slots=1)
    segments = [Decode(source, 2, client=client) for source in sources for client in "abcdefgh"]
    driven.submit(*segments)
    driven.step()
    started = sum(segment.status is not DecodeStatus.WAITING for segment in segments)
    assert started == 1 + RUN_SIZE.ahead_of_several
    driven.exhaust()


def test_a_slot_is_taken_again_before_the_next_step(sessions: Sessions, sources: list[list[int]]) -> None:
    driven = sessions.driven(slots=1)
    first, second = Decode(sources[0], 1), Decode(sources[1], 2)
    driven.submit(first, second)
    driven.step()
    assert first.finish_reason is FinishReason.LENGTH
    driven.step()
    assert len(second.target_ids) == 1
    driven.step()
    assert second.finished
    assert driven.metric("decode_batch_slots_count") == driven.metric("decode_batch_slots_sum") == 3


def test_what_is_encoded_and_ready_counts_as_what_a_thread_is_to_decode(
    sessions: Sessions, sources: list[list[int]]
) -> None:
    slots, ready = batch.HANDFUL + 2, 4
    driven = sessions.driven(slots=slots)
    driven.submit(*(Decode(sources[0], 1) for _ in range(slots + ready)))
    driven.step()
    assert (len(driven.batch.runner.scheduler.active), driven.mailbox.unfinished) == (0, ready)
    other = driven.mailbox.register_worker()
    driven.step()
    # Segments that were ready count among those that a thread decodes before the next thread gets any.
    kept = batch.HANDFUL - ready
    driven.submit(*(Decode(sources[0], 1) for _ in range(kept + 1)))
    assert len(driven.mailbox.take(other, slots, wait=False) or []) == 1


def test_nothing_to_do_is_a_step_without_a_run(driven: DrivenBatch) -> None:
    driven.step()
    assert driven.metric("decode_step_duration_seconds_count") == 0


def test_a_stopped_mailbox_ends_the_steps(driven: DrivenBatch) -> None:
    driven.mailbox.stop()
    assert not driven.batch.step(wait=True)


def test_deltas_are_told_after_each_token_and_the_end_once(driven: DrivenBatch, sources: list[list[int]]) -> None:
    told: list[tuple[int, bool]] = []
    segment = Decode(
        sources[0],
        3,
        wants_deltas=True,
        on_progress=lambda segment: told.append((len(segment.target_ids), segment.finished)),
    )
    driven.submit(segment)
    driven.exhaust()
    assert told == [(1, False), (2, False), (3, True)]


def test_a_cancelled_segment_leaves_before_the_next_token(driven: DrivenBatch, sources: list[list[int]]) -> None:
    stays, leaves = Decode(sources[0], 8), Decode(sources[1], 8)
    driven.submit(leaves, stays)
    driven.step()
    driven.mailbox.cancel([leaves])
    driven.step()
    assert (leaves.status, len(leaves.target_ids)) == (DecodeStatus.CANCELLED, 1)
    assert len(driven.batch.runner.scheduler.active) == 1
    driven.exhaust()
    assert len(stays.target_ids) == 8


def test_a_segment_past_its_deadline_is_not_even_encoded(driven: DrivenBatch, sources: list[list[int]]) -> None:
    told: list[Decode] = []
    segment = Decode(sources[0], 8, deadline_s=EXPIRED_S, on_progress=told.append)
    driven.submit(segment)
    driven.step()
    assert isinstance(segment.error, DeadlineExceededError)
    assert told == [segment]
    assert driven.mailbox.unfinished == 0
    assert driven.metric("encode_duration_seconds_count") == 0


def test_the_metrics_follow(driven: DrivenBatch, sources: list[list[int]]) -> None:
    assert driven.metric("slots") == 3
    snapshot = snapshot_of(driven.batch)
    assert snapshot.slots == 3
    assert 0 < snapshot.target_capacity <= MAX_TARGET_TOKENS
    assert driven.metric("kv_cache_bytes") > 0
    driven.submit(Decode(sources[0], 2), Decode(sources[1], 1))
    driven.step()
    assert driven.metric("slots_active") == 1
    driven.step()
    assert driven.metric("slots_active") == 0
    assert driven.metric("source_tokens_total") == len(sources[0]) + len(sources[1])
    assert driven.metric("target_tokens_total") == 3
    assert driven.metric("queue_duration_seconds_count") == 2
    assert driven.metric("decode_step_duration_seconds_count") == 2


def test_the_last_segment_that_is_cancelled_leaves_no_active_slot(
    driven: DrivenBatch, sources: list[list[int]]
) -> None:
    segment = Decode(sources[0], 8)
    driven.submit(segment)
    driven.step()
    assert driven.metric("slots_active") == 1
    driven.mailbox.cancel([segment])
    driven.step()
    assert driven.metric("slots_active") == 0


def test_the_queue_ends_where_an_engine_thread_takes_a_segment_not_where_it_gets_a_slot(
    sessions: Sessions, sources: list[list[int]]
) -> None:
    driven = sessions.driven(slots=1)
    segments = [Decode(source, 8) for source in sources[:3]]
    driven.submit(*segments)
    driven.step()
    assert (len(driven.batch.runner.scheduler.active), len(driven.mailbox.waiting)) == (1, 0)
    taken_s = sum(segment.admitted_s - segment.submitted_s for segment in segments)
    assert driven.metric("queue_duration_seconds_count") == 3
    driven.exhaust()
    assert driven.metric("queue_duration_seconds_count") == 3
    # Both times are taken one after the other at the begin of the step, the slots of the others came steps later.
    queued_s = driven.metric("queue_duration_seconds_sum")
    assert taken_s <= queued_s < sum(segment.first_token_s - segment.submitted_s for segment in segments)
    assert queued_s < sum(segment.encoded_s - segment.submitted_s for segment in segments)


class PlantedError(Exception):
    """What a test makes a run raise."""


@contextmanager
def failing_decoder() -> Iterator[None]:
    """Every run is complete, the buffers are written, and then it fails."""
    run = DecoderStep.run

    def fail(step: DecoderStep, *rows: int) -> None:
        run(step, *rows)
        raise PlantedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DecoderStep, "run", fail)
        with pytest.raises(PlantedError):
            yield


def test_a_broken_decoder_shows_nothing(driven: DrivenBatch, sources: list[list[int]]) -> None:
    segments = [asking(source, MAX_TARGET_TOKENS) for source in sources[:3]]
    driven.submit(*segments[:2])
    driven.step()
    added = [segment.log_probability for segment in segments[:2]]
    assert 0.0 not in added
    driven.submit(segments[2])
    with failing_decoder():
        driven.step()
    assert snapshot_of(driven.batch).active == segments
    assert [len(segment.target_ids) for segment in segments] == [1, 1, 0]
    assert [segment.log_probability for segment in segments] == [*added, 0.0]
    assert {segment.error for segment in segments} == {None}


def failing_at(call: int, run: Callable[..., object]) -> Callable[..., object]:
    """Wraps a run, which then fails at one call, after its work."""
    calls = 0

    def fail(*arguments: object) -> object:
        nonlocal calls
        calls += 1
        result = run(*arguments)
        if calls == call:
            raise PlantedError
        return result

    return fail


def test_a_run_that_fails_once_harms_nobody(
    sessions: Sessions, driven: DrivenBatch, sources: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What failed has written its buffers; its halves write them again."""
    expected = [sessions.alone(source) for source in sources[:3]]
    monkeypatch.setattr(EncoderSession, "encode", failing_at(1, EncoderSession.encode))
    monkeypatch.setattr(DecoderStep, "run", failing_at(3, DecoderStep.run))
    segments = [Decode(source, MAX_TARGET_TOKENS) for source in sources[:3]]
    driven.submit(*segments)
    with capture_logs() as log:
        driven.exhaust()
    assert [segment.target_ids for segment in segments] == expected
    assert {segment.error for segment in segments} == {None}
    assert [entry["graph"] for entry in log] == ["encoder", "decoder"]
    assert driven.failed_runs() == {"encoder": 1, "decoder": 1}


def test_a_segment_that_no_run_of_the_decoder_bears_is_alone_no_proof_that_the_engine_is_broken(
    sessions: Sessions, driven: DrivenBatch, sources: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, slots = DecoderStep.run, driven.opened.slots
    poisonous, sound = Decode([*range(5, 12), 2], 8), Decode(sources[0], 8)

    def fail_on_the_poison(step: DecoderStep, rows: int, start: int = 0) -> object:
        if slots.rows.memory_lengths[start : start + rows].max() == len(poisonous.source_ids):
            raise PlantedError
        return run(step, rows, start)

    monkeypatch.setattr(DecoderStep, "run", fail_on_the_poison)
    driven.submit(poisonous)
    with capture_logs():
        driven.step()
    assert isinstance(poisonous.error, InternalError)
    driven.submit(sound)
    driven.exhaust()
    assert sound.target_ids == sessions.alone(sources[0])[:8]


def test_a_source_that_no_slot_has_room_for_ends_alone(
    sessions: Sessions, driven: DrivenBatch, sources: list[list[int]]
) -> None:
    told: list[Decode] = []
    too_long = Decode([*range(5, 5 + MAX_SOURCE_TOKENS), 2], 8, on_progress=told.append)
    sound = Decode(sources[0], 8)
    driven.submit(too_long, sound)
    with capture_logs() as log:
        driven.exhaust()
    assert told == [too_long]
    assert isinstance(too_long.error, TextFailedError)
    assert [(entry["event"], entry["error"]) for entry in log] == [("a segment failed", "ValueError")]
    assert sound.target_ids == sessions.alone(sources[0])[:8]


@pytest.mark.parametrize(
    ("planted", "decoding"),
    [
        ((Search, "__init__"), Decoding(beam_size=2)),
        ((Beam, "advance"), Decoding(beam_size=2)),
        ((sampling, "draw"), Decoding(sampling=Sampling(seed=1))),
    ],
    ids=["admission", "beam", "draw"],
)
def test_what_cannot_be_decided_for_one_segment_ends_that_one_alone(
    sessions: Sessions,
    driven: DrivenBatch,
    sources: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
    planted: tuple[object, str],
    decoding: Decoding,
) -> None:
    def fail(*_: object) -> None:
        raise PlantedError

    monkeypatch.setattr(*planted, fail)
    bad, sound = Decode(sources[1], 8, decoding=decoding), Decode(sources[0], 8)
    driven.submit(bad, sound)
    with capture_logs() as log:
        driven.exhaust()
    assert isinstance(bad.error, TextFailedError)
    assert [entry["error"] for entry in log] == ["PlantedError"]
    assert sound.target_ids == sessions.alone(sources[0])[:8]


def test_who_has_ended_is_told_where_the_slots_then_fail(
    driven: DrivenBatch, sources: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Runner, edits: object) -> None:
        raise PlantedError

    told: list[Decode] = []
    ended, expired = Decode(sources[0], 1, on_progress=told.append), Decode(sources[1], 9, on_progress=told.append)
    driven.submit(expired)
    driven.step()
    monkeypatch.setattr(Runner, "apply", fail)
    driven.submit(ended)
    with pytest.raises(PlantedError):
        driven.step()
    assert told == [ended]
    assert ended.finish_reason is FinishReason.LENGTH
    expired.deadline_s = EXPIRED_S
    with pytest.raises(PlantedError):
        driven.step()
    assert told == [ended, expired]
    driven.batch.fail(InternalError("broken"))
    assert driven.mailbox.unfinished == 0


def log_probabilities_alone(sessions: Sessions, source: list[int], limit: int) -> list[float]:
    """What is added up after each step of a segment that has the batch for itself."""
    driven, segment = sessions.driven(slots=1), asking(source, limit)
    driven.submit(segment)
    sums = []
    while not segment.finished:
        driven.step()
        sums.append(segment.log_probability)
    return sums


def test_log_probabilities_are_added_up_for_who_asks_and_for_nobody_else(
    sessions: Sessions, driven: DrivenBatch, sources: list[list[int]]
) -> None:
    sums = log_probabilities_alone(sessions, sources[0], 8)
    assert len(set(sums)) == 8
    assert sums == sorted(sums, reverse=True)
    asks, does_not = asking(sources[0], 8), Decode(sources[1], 8)
    driven.submit(does_not, asks)
    for expected in sums:
        driven.step()
        assert (asks.log_probability, does_not.log_probability) == (expected, 0.0)


def test_nothing_is_computed_while_nobody_asks(
    driven: DrivenBatch, sources: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    computed, compute = list[int](), DecoderStep.best
    monkeypatch.setattr(DecoderStep, "best", lambda *asked: computed.append(1) or compute(*asked))
    driven.submit(Decode(sources[0], 4), Decode(sources[1], 20))
    driven.step()
    assert computed == []
    driven.submit(asking(sources[2], 2))
    driven.exhaust()
    assert len(computed) == 2


def test_a_run_that_fails_adds_nothing(
    sessions: Sessions, driven: DrivenBatch, sources: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [log_probabilities_alone(sessions, source, 8) for source in sources[:3]]
    segments = [asking(source, 8) for source in sources[:3]]
    driven.submit(*segments)
    monkeypatch.setattr(DecoderStep, "run", failing_at(2, DecoderStep.run))  # and its halves do not
    driven.exhaust()
    assert driven.failed_runs()["decoder"] == 1
    assert [segment.log_probability for segment in segments] == [sums[-1] for sums in expected]


def test_failure_answers_everyone_in_a_slot(driven: DrivenBatch, sources: list[list[int]]) -> None:
    told: list[Decode] = []
    segments = [Decode(source, 8, on_progress=told.append) for source in sources[:3]]
    driven.submit(*segments)
    with failing_decoder():
        driven.step()
    failure = InternalError("broken")
    driven.batch.fail(failure)
    driven.batch.fail(failure)  # again: nothing is left
    assert sorted(map(id, told)) == sorted(map(id, segments))
    assert {segment.error for segment in segments} == {failure}
    assert driven.mailbox.unfinished == len(driven.batch.runner.scheduler.active) == driven.metric("slots_active") == 0


def test_failure_answers_also_who_is_on_the_way_to_a_slot(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder fails at its second micro-batch: some are encoded, some are not."""
    lengths = [25, 3, 25, 3, 3]
    driven, told = sessions.driven(slots=len(lengths)), list[Decode]()
    encode, calls = EncoderSession.encode, []

    def fail_second(encoder: EncoderSession, sources: list[list[int]]) -> object:
        calls.append(len(sources))
        if len(calls) >= 2:  # the halves too, and what proves the engine sound
            raise PlantedError
        return encode(encoder, sources)

    monkeypatch.setattr(EncoderSession, "encode", fail_second)
    segments = [Decode([5] * (length - 1) + [2], 8, on_progress=told.append) for length in lengths]
    expired = Decode([2], 8, deadline_s=EXPIRED_S, on_progress=told.append)
    driven.submit(expired, *segments)
    with pytest.raises(PlantedError):
        driven.batch.step(wait=False)
    assert calls == [3, 2, 1, 1, 1]  # the last to prove the engine sound
    driven.batch.fail(InternalError("broken"))
    assert sorted(map(id, told)) == sorted(map(id, [expired, *segments]))
    assert isinstance(expired.error, DeadlineExceededError)
    assert driven.mailbox.unfinished == len(driven.batch.runner.scheduler.active) == driven.metric("slots_active") == 0


def test_a_segment_that_failed_alone_is_answered_where_the_encoder_breaks_after_it(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    poisonous = 7
    encode = EncoderSession.encode

    def fail_at_poison_and_long(encoder: EncoderSession, sources: list[list[int]]) -> object:
        if broken or any(poisonous in source for source in sources):
            raise PlantedError
        if any(len(source) == 25 for source in sources):
            broken.append(True)
            raise PlantedError
        return encode(encoder, sources)

    monkeypatch.setattr(EncoderSession, "encode", fail_at_poison_and_long)
    driven, told, broken = sessions.driven(slots=3), list[Decode](), list[bool]()
    sources = [[poisonous, 5, 2], [5, 5, 2], [5] * 24 + [2]]
    alone, *others = segments = [Decode(source, 8, on_progress=told.append) for source in sources]
    driven.submit(*segments)
    with pytest.raises(PlantedError):
        driven.batch.step(wait=False)
    driven.batch.fail(InternalError("broken"))
    assert sorted(map(id, told)) == sorted(map(id, segments))
    assert isinstance(alone.error, TextFailedError)
    assert {str(segment.error) for segment in others} == {"broken"}
    assert driven.mailbox.unfinished == 0


def test_an_idle_batch_holds_nobodys_segment(driven: DrivenBatch, sources: list[list[int]]) -> None:
    class Listener:
        def note(self, segment: Decode) -> None:
            pass

    listener = Listener()
    gone = weakref.ref(listener)
    driven.submit(Decode(sources[0], 1, on_progress=listener.note))
    driven.exhaust()
    del listener
    gc.collect()
    assert gone() is None
