"""Decoding without a server, on the synthetic model."""

import os
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from dragoman.errors import BundleError, InternalError
from service.decode import Decode, FinishReason
from service.engine.offline import OfflineEngine
from service.options import Decoding
from service.runtime.host import DecoderStep
from tests.engine_harness import PlantedError, fail_encoder
from tests.synthetic import MAX_TARGET_TOKENS, Synthetic

pytestmark = pytest.mark.torch

SLOTS = 2


@pytest.fixture
def engine(fp32: Synthetic) -> Iterator[OfflineEngine]:
    engine = OfflineEngine(fp32.bundle, threads=2, slots=SLOTS)
    yield engine
    engine.close()


def segments(limit: int = MAX_TARGET_TOKENS) -> list[Decode]:
    return [Decode([source, 2], limit) for source in range(3, 90)]


def test_every_segment_ends_and_again_in_the_same_way(engine: OfflineEngine) -> None:
    first, second = segments(), segments()
    engine.decode(first)
    assert {segment.finish_reason for segment in first} <= {FinishReason.EOS, FinishReason.LENGTH}
    engine.decode([])
    engine.decode(second)
    assert [segment.target_ids for segment in second] == [segment.target_ids for segment in first]


def test_no_number_of_threads_means_one_a_core(fp32: Synthetic, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: set[int] = set()
    run = DecoderStep.run
    monkeypatch.setattr(DecoderStep, "run", lambda step, *rows: [steps.add(id(step)), run(step, *rows)][1])
    OfflineEngine(fp32.bundle, slots=SLOTS).decode(segments())
    assert 1 <= len(steps) <= len(os.sched_getaffinity(0))


def test_slots_that_no_memory_holds_are_named(fp32: Synthetic) -> None:
    with pytest.raises(BundleError, match="no memory for 1099511627776 slots on each of 2 threads"):
        OfflineEngine(fp32.bundle, threads=2, slots=2**40)


def test_what_every_run_raises_is_raised(engine: OfflineEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise PlantedError

    monkeypatch.setattr(DecoderStep, "run", fail)
    with capture_logs(), pytest.raises(PlantedError):
        engine.decode(segments())


@pytest.mark.parametrize("known", [True, False], ids=["among others", "alone in its run"])
def test_the_error_of_a_segment_is_raised_once_the_others_are_decoded(
    engine: OfflineEngine, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    fail_encoder(monkeypatch, lambda source: source[0] == 7)
    asked = segments(4) if known else [*segments(4)[:3], Decode([7] * 20 + [2], 4)]
    with capture_logs(), pytest.raises(InternalError, match="fails on this text"):
        engine.decode(asked)
    assert {segment.source_ids[0] for segment in asked if segment.error is not None} == {7}
    assert all(segment.finished for segment in asked)


def test_a_beam_that_no_thread_has_room_for_is_an_error(engine: OfflineEngine) -> None:
    with pytest.raises(ValueError, match="a beam of 99 hypotheses needs as many slots, there are"):
        engine.decode([Decode([5, 2], 4, decoding=Decoding(beam_size=99))])
