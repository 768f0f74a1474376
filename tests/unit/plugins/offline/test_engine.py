"""Decoding without a server, on the synthetic model."""

import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from structlog.testing import capture_logs

from dragoman.errors import BundleError, InternalError, TextFailedError
from plugins.offline.engine import OfflineEngine, drive
from service.decode import Decode, FinishReason
from service.engine.graphs import open_graphs
from service.engine.runner import Runner
from service.options import Decoding
from service.runtime.slots import DecoderStep
from tests.engine_harness import PlantedError, fail_encoder
from tests.synthetic import MAX_TARGET_TOKENS, Synthetic

pytestmark = pytest.mark.torch

SLOTS = 2
EOS = 2
SOURCES = [[token, token + 1, EOS] for token in range(3, 12)]

Drive = Callable[..., list[Decode]]


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


@pytest.fixture(scope="module")
def drive_all(fp32: Synthetic) -> Drive:
    graphs = open_graphs(fp32.bundle, "cpu")

    def drive_all(slots: int, waves: Sequence[Sequence[list[int]]], limit: int = MAX_TARGET_TOKENS, **options):
        decodes = [[Decode(source, limit) for source in wave] for wave in waves]
        drive(Runner(fp32.bundle.manifest, *graphs, slots), decodes, **options)
        return [decode for wave in decodes for decode in wave]

    return drive_all


@pytest.mark.parametrize("slots", [1, 4, 20])
def test_all_waves_end_as_each_sentence_does_alone(drive_all: Drive, slots: int) -> None:
    expected = [drive_all(1, [[source]])[0].target_ids for source in SOURCES]
    decodes = drive_all(slots, [SOURCES[:5], [], SOURCES[5:6], SOURCES[6:]])
    assert [decode.target_ids for decode in decodes] == expected
    assert {decode.finish_reason for decode in decodes} <= {FinishReason.EOS, FinishReason.LENGTH}


def test_nothing_to_do_ends_at_once(drive_all: Drive) -> None:
    assert drive_all(2, []) == drive_all(2, [[], []]) == []


def test_somebody_sees_the_logits_of_every_token(drive_all: Drive) -> None:
    seen: list[tuple[Decode, int]] = []

    def watch(decode: Decode, logits: NDArray[np.floating]) -> None:
        seen.append((decode, int(logits.argmax())))

    decodes = drive_all(2, [SOURCES[:3]], limit=4, watch=watch)
    for decode in decodes:
        tokens = [token for each, token in seen if each is decode]
        assert tokens[: len(decode.target_ids)] == decode.target_ids
        assert len(tokens) == decode.decoded_tokens


def test_a_source_on_which_the_encoder_fails_ends_alone(drive_all: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_encoder(monkeypatch, lambda source: source == SOURCES[1])
    with capture_logs():
        decodes = drive_all(2, [SOURCES[:3]], limit=2)
    assert [type(decode.error) for decode in decodes] == [type(None), TextFailedError, type(None)]
