"""The graphs over the slots of one thread, on the synthetic model."""

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from structlog.testing import capture_logs

from dragoman.errors import TextFailedError
from plugins import gpu
from plugins.gpu.device import DeviceStep
from service.decode import Decode
from service.engine.graphs import open_graphs
from service.engine.runner import Runner
from service.engine.step import Asked, Copy, Force, Fork, Move
from service.options import SCORING
from service.runtime.slots import DecoderStep
from tests.engine_harness import PlantedError, fail_encoder
from tests.invariants import lengths_of
from tests.synthetic import Synthetic

pytestmark = pytest.mark.torch

SOURCES = [[5, 6, 2], [7, 2], [8, 9, 10, 2]]


@pytest.fixture(params=[False, True], ids=["on the host", "on a device"])
def make(fp32: Synthetic, request: pytest.FixtureRequest) -> Callable[[int], Runner]:
    graphs = gpu.open_graphs(fp32.bundle, "cpu") if request.param else open_graphs(fp32.bundle, "cpu")
    return lambda slots: Runner(fp32.bundle.manifest, *graphs, slots)


def admit(runner: Runner, sources: list[list[int]]) -> None:
    """Begins sentences in the first slots."""
    for slot, (source, memory) in enumerate(zip(sources, runner.encode(sources), strict=True)):
        runner.fill(slot, Decode(source, 9), memory)


def alone(make: Callable[[int], Runner], source: list[int], steps: int) -> list[int | None]:
    runner = make(1)
    admit(runner, [source])
    return [runner.run(1)[0] for _ in range(steps)]


def test_what_leaves_and_comes_changes_nothing_for_the_others(make: Callable[[int], Runner]) -> None:
    runner = make(3)
    admit(runner, SOURCES)
    seen = [runner.run(3) for _ in range(2)]
    runner.apply([Move(2, 0)])  # the last takes the place of the first
    assert lengths_of(runner.table, 2) == ([2, 2], [len(SOURCES[2]), len(SOURCES[1])])
    [memory] = runner.encode(SOURCES[:1])
    runner.fill(2, Decode(SOURCES[0], 9), memory)
    later = [runner.run(3) for _ in range(2)]
    for slot, source in enumerate(SOURCES):
        assert [step[slot] for step in seen] == alone(make, source, 2)
    assert [step[0] for step in later] == alone(make, SOURCES[2], 4)[2:]
    assert [step[1] for step in later] == alone(make, SOURCES[1], 4)[2:]
    assert [step[2] for step in later] == alone(make, SOURCES[0], 2)


def test_the_chosen_ids_are_those_of_the_greatest_logits(make: Callable[[int], Runner]) -> None:
    runner = make(3)
    admit(runner, SOURCES)
    ids = runner.run(3)
    assert [int(np.argmax(runner.table.logits_of(slot))) for slot in range(3)] == ids


def test_the_memory_of_a_runner_is_free_when_nobody_has_it_any_more(make: Callable[[int], Runner]) -> None:
    runner = make(3)
    admit(runner, SOURCES)
    runner.run(3)
    kept = weakref.ref(runner)
    gc.disable()  # collections are rare in a server
    try:
        del runner
        assert kept() is None
    finally:
        gc.enable()


def test_a_source_on_which_the_encoder_fails_has_no_memory_and_the_failure_is_told(
    fp32: Synthetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    runner = Runner(fp32.bundle.manifest, *open_graphs(fp32.bundle, "cpu"), 1, told.append)
    fail_encoder(monkeypatch, lambda source: source == [7, 2])
    with capture_logs() as log:
        memories = runner.encode(SOURCES)
    assert [memory is None for memory in memories] == [False, True, False]
    assert told == ["encoder"] * len(log)
    assert len(log) > 0


def test_a_decoder_that_fails_on_everything_changes_nothing(
    make: Callable[[int], Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = make(2)
    admit(runner, SOURCES[:2])

    def fail(*_: object) -> None:
        raise PlantedError

    with monkeypatch.context() as patch:
        for kind in (DecoderStep, DeviceStep):
            patch.setattr(kind, "run", fail)
        with capture_logs(), pytest.raises(PlantedError):
            runner.run(2)
    assert lengths_of(runner.table, 2)[0] == [0, 0]


def test_a_fork_goes_on_as_the_slot_it_was_made_of_and_a_copy_becomes_one(make: Callable[[int], Runner]) -> None:
    runner = make(3)
    admit(runner, SOURCES[:1])
    runner.run(1)
    runner.apply([Fork(0, 1), Fork(0, 2), Force(1, 5)])
    seen = runner.run(3)
    assert seen[0] == seen[2]
    runner.apply([Copy(0, 1, 0)])
    later = runner.run(3)
    assert later[0] == later[1] == later[2]
    assert [seen[0], later[0]] == alone(make, SOURCES[0], 3)[1:]


def test_the_best_tokens_begin_with_the_chosen_one_and_have_its_log_probability(make: Callable[[int], Runner]) -> None:
    runner = make(3)
    admit(runner, SOURCES)
    ids = runner.run(3)
    asked = {0: Asked(1, [5, 7, 5]), 2: Asked(4, [9])}
    found = runner.search(asked)
    for slot, (_, tokens) in asked.items():
        best = found[slot]
        assert best.ids[0] == ids[slot]
        assert len(set(best.ids)) == 4
        logits = runner.table.logits_of(slot).astype(np.float64)
        scores = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        assert best.log_probabilities == pytest.approx(scores[best.ids], abs=1e-5)
        assert best.asked[: len(tokens)] == pytest.approx(scores[tokens], abs=1e-5)
    # The log-probability of a token is the same, bit for bit, however it is come by, and whoever is looked at besides.
    for slot in asked:
        alone = runner.search({slot: Asked(1, found[slot].ids)})[slot]
        assert alone.asked == found[slot].log_probabilities


def test_no_more_tokens_than_there_are_pieces(make: Callable[[int], Runner], fp32: Synthetic) -> None:
    runner = make(1)
    admit(runner, SOURCES[:1])
    runner.run(1)
    size = fp32.bundle.manifest.vocabulary_size
    assert sorted(runner.search({0: Asked(10 * size, ())})[0].ids) == list(range(size))


def test_a_slot_on_which_the_search_fails_has_no_best_tokens(
    make: Callable[[int], Runner], monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = make(3)
    admit(runner, SOURCES)
    runner.run(3)
    everybody = dict.fromkeys(range(3), Asked(4, (5,)))
    expected = runner.search(everybody)
    for kind in (DecoderStep, DeviceStep):
        best = kind.best

        def fail_on_one(step, start: int, count: int, asked: np.ndarray, best=best):
            if start <= 1 < start + len(asked):
                raise PlantedError
            return best(step, start, count, asked)

        monkeypatch.setattr(kind, "best", fail_on_one)
    with capture_logs() as log:
        assert runner.search(everybody) == {slot: expected[slot] for slot in (0, 2)}
    assert {(entry["graph"], entry["error"]) for entry in log} == {("search", "PlantedError")}


def scoring_the_first(make: Callable[[int], Runner], others: list[list[int]]) -> tuple[Runner, list[Decode]]:
    """A runner with a segment that asks for log-probabilities, and others that ask for nothing."""
    runner = make(3)
    decodes = [Decode(SOURCES[0], 9, decoding=SCORING), *(Decode(source, 9) for source in others)]
    for decode, memory in zip(decodes, runner.encode([SOURCES[0], *others]), strict=True):
        runner.admit(decode, memory)
    return runner, decodes


@pytest.mark.parametrize("others", [[], SOURCES[1:2], SOURCES[1:]])
def test_a_segment_on_which_the_search_fails_ends_alone(
    make: Callable[[int], Runner], monkeypatch: pytest.MonkeyPatch, others: list[list[int]]
) -> None:
    runner, asking = scoring_the_first(make, others)
    for kind in (DecoderStep, DeviceStep):
        best = kind.best

        def fail_on_the_source(step, start: int, count: int, asked: np.ndarray, best=best):
            if len(SOURCES[0]) in lengths_of(runner.table, start + len(asked))[1][start:]:
                raise PlantedError
            return best(step, start, count, asked)

        monkeypatch.setattr(kind, "best", fail_on_the_source)
    with capture_logs():
        runner.apply(runner.step().edits)
        runner.apply(runner.step().edits if others else ())
    assert isinstance(asking[0].error, TextFailedError)
    assert [row.decode for row in runner.scheduler.active] == asking[:0:-1]
    assert [decode.target_ids for decode in asking[1:]] == [alone(make, source, 2) for source in others]


@pytest.mark.parametrize("others", [[], SOURCES[1:]])
def test_a_search_that_fails_on_everything_is_broken(
    make: Callable[[int], Runner], monkeypatch: pytest.MonkeyPatch, others: list[list[int]]
) -> None:
    runner, _ = scoring_the_first(make, others)

    def fail(*_: object) -> None:
        raise PlantedError

    for kind in (DecoderStep, DeviceStep):
        monkeypatch.setattr(kind, "best", fail)
    with capture_logs(), pytest.raises(PlantedError):
        runner.step()
