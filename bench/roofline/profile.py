"""Where the encoder and the decoder of a bundle spend their time, by the profiler of the runtime that serves them."""

import functools
import itertools
import json
import operator
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bench.decoding import Batch, Graphs
from bench.roofline.costs import Array, Cost, Keys, cost
from bench.roofline.peaks import ROUNDED_OFF_US, ProfilerCost
from bench.sentences import Sentences, random_sentences
from dragoman.bundle import DECODER, ENCODER, Bundle
from service.runtime.host import DecoderSession, DecoderStep, EncoderSession
from service.runtime.sessions import open_graph
from service.runtime.slots import SlotTable

# An operator takes some time, whatever the clock says.
LEAST_US = 0.1
# Rounds that do not count, and of every other round the part of the runs.
WARM_UP_ROUNDS, WARM_UP_PART = 2, 5
FASTER = 0.25

T = TypeVar("T")


@dataclass(frozen=True)
class Shape:
    """What is run: in turn `target` runs without the profiler and as many with it, so that both see the same weather.

    Attributes:
        target: tokens that are decoded of each before the next sentences come.
        runs: of each graph, at least.
    """

    rows: int
    source: int
    target: int
    runs: int

    @property
    def rounds(self) -> int:
        return WARM_UP_ROUNDS + -(-self.runs // self.target)

    @property
    def unsettled(self) -> int:
        """Runs at the start of a round that do not count: the processor's caches hold the other session's data."""
        return self.target // WARM_UP_PART

    def typical(self, us: Sequence[float]) -> float:
        """Estimate the microseconds of a run on an idle processor: at each token the faster rounds' time."""
        rounds = np.array(us).reshape(self.rounds, self.target)
        return float(np.quantile(rounds[WARM_UP_ROUNDS:, self.unsettled :], FASTER, axis=0).mean())


@dataclass(frozen=True)
class Operator:
    """All operators of a graph that have one label.

    Attributes:
        cost: of all calls in one run of the graph.
        us: microseconds of all calls in one run.
    """

    cost: Cost
    calls: int
    us: float


@dataclass(frozen=True)
class Profile:
    """One graph.

    Attributes:
        wall_us: microseconds of a run, called as the engine calls it, without the profiler.
    """

    graph: str
    wall_us: float
    operators: list[Operator]

    @property
    def operators_us(self) -> float:
        return sum(each.us for each in self.operators)


def sentences_of(bundle: Bundle, shape: Shape, limit: int = 1) -> Sentences:
    """Draw a sentence for each row: time depends on the number of its tokens alone."""
    return random_sentences(bundle.manifest, [shape.source] * shape.rows, [limit] * shape.rows)


def profile_encoder(bundle: Bundle, shape: Shape, profiler: ProfilerCost, folder: Path) -> Profile:
    """Run the encoder over a micro-batch of all rows."""
    sources = sentences_of(bundle, shape).sources

    def a_round(encoder: EncoderSession) -> list[float]:
        return [_timed_us(lambda: encoder.encode(sources)) for _ in range(shape.target)]

    plain, profiled = EncoderSession(bundle, "cpu"), EncoderSession(bundle, "cpu")
    profiled.session = session = open_graph(bundle, ENCODER, "cpu", profile=folder / "encoder")
    walls_us, events = _in_turn(a_round, plain, profiled, session.end_profiling, shape.rounds)
    keys = Keys(own=shape.source, source=shape.source)
    return Profile("encoder", shape.typical(walls_us), summarize(events, keys, shape, profiler))


def profile_decoder(bundle: Bundle, shape: Shape, profiler: ProfilerCost, folder: Path) -> Profile:
    """Run the decoder step over all rows, as the engine does: caches written in place, every output bound."""
    memories = EncoderSession(bundle, "cpu").encode(sentences_of(bundle, shape).sources)
    slots = SlotTable(bundle.manifest, shape.rows)

    def a_round(step: DecoderStep) -> list[float]:
        return _decode(step, slots, memories, shape.target)

    # The whole output layer, whether there is a shortlist or not: its candidates are another graph.
    plain, profiled = (DecoderSession(bundle, "cpu", shortlist=False) for _ in range(2))
    profiled.session = open_graph(bundle, DECODER, "cpu", profile=folder / "decoder")
    steps = DecoderStep(plain, slots), DecoderStep(profiled, slots)
    walls_us, events = _in_turn(a_round, *steps, profiled.session.end_profiling, shape.rounds)
    keys = Keys(own=(shape.unsettled + 1 + shape.target) / 2, source=shape.source)
    return Profile("decoder", shape.typical(walls_us), summarize(events, keys, shape, profiler))


def _in_turn(
    a_round: Callable[[T], list[float]], plain: T, profiled: T, end: Callable[[], str], rounds: int
) -> tuple[list[float], list[dict[str, Any]]]:
    """Run rounds without the profiler and with it; gives microseconds of each run without, and the profiler's events.

    Args:
        a_round: runs the one or the other; gives the microseconds of each run.
        end: ends the profiler; gives the name of its file.
    """
    walls_us: list[float] = []
    for _ in range(rounds):
        walls_us += a_round(plain)
        a_round(profiled)
    events: list[dict[str, Any]] = json.loads(Path(end()).read_text())
    return walls_us, events


def _decode(step: DecoderStep, slots: SlotTable, memories: list[NDArray[np.generic]], tokens: int) -> list[float]:
    """Decode all rows from their start; gives the microseconds of each step."""
    for row, memory in enumerate(memories):
        slots.fill(row, memory)
    walls_us = []
    for _ in range(tokens):
        walls_us.append(_timed_us(lambda: step.run(len(memories))))
        slots.commit(len(memories))
    return walls_us


def _timed_us(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e6


def engine_python_us(bundle: Bundle, shape: Shape) -> float | None:
    """Measure what a step of the engine takes beyond the run of its graph: scheduling, commit, delivery, metrics.

    Returns:
        Microseconds of a step with all rows active, in which no sentence begins or ends; None where no step was such.
    """
    # No sentence ends before its limit, so that every step but the first and the last has all rows.
    batch = Batch(Graphs.on_host(bundle).endless(), shape.rows)
    limit = min(max(shape.target, 8), bundle.manifest.max_target_tokens)
    beyond: list[float] = []
    for _ in range(-(-shape.runs // limit)):
        batch.submit(sentences_of(bundle, shape, limit))
        batch.step()
        while batch.active:
            before, full = batch.steps, batch.active == shape.rows
            wall_us = _timed_us(batch.step)
            if full and batch.active == shape.rows:
                beyond.append(wall_us - (batch.steps - before).seconds * 1e6)
    return statistics.median(beyond) if beyond else None


def summarize(events: Iterable[dict[str, Any]], keys: Keys, shape: Shape, profiler: ProfilerCost) -> list[Operator]:
    """Put operators of one label together."""
    runs = list(_runs(events))
    us: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(runs))
    costs: dict[str, list[Cost]] = defaultdict(list)
    for index, nodes in enumerate(runs):
        for node in nodes:
            call, call_us = _call(node["args"], keys), node["dur"] + ROUNDED_OFF_US
            arrays = len(node["args"]["input_type_shape"]) + len(node["args"]["output_type_shape"])
            us[call.label][index] += max(call_us - profiler.us(arrays), LEAST_US)
            if index == 0:
                costs[call.label].append(call)
    operators = [
        Operator(functools.reduce(operator.add, calls), len(calls), shape.typical(us[label]))
        for label, calls in costs.items()
    ]
    return sorted(operators, key=lambda each: -each.us)


def _call(arguments: dict[str, Any], keys: Keys) -> Cost:
    inputs, outputs = _arrays(arguments["input_type_shape"]), _arrays(arguments["output_type_shape"])
    return cost(arguments["op_name"], inputs, outputs, keys)


def _runs(events: Iterable[dict[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    """Yield the operators of each run; the profiler notes a run when it has ended."""
    nodes: list[dict[str, Any]] = []
    for event in events:
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            nodes.append(event)
        elif event["name"] == "model_run":
            yield nodes
            nodes = []


def _arrays(shapes: Iterable[dict[str, list[int]]]) -> list[Array]:
    return [Array(type_, tuple(shape)) for type_, shape in itertools.chain.from_iterable(map(dict.items, shapes))]
