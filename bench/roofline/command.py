"""Where an encoder run and a decode step spend their time, and what is left.

    dragoman bench roofline [--bundle DIR] [--rows 32] [--source 10] [--target 10]

Both graphs run as they are served, on one thread and with caches written in place, under onnxruntime's profiler.
Beside the time of each operator stand its multiply-adds and bytes, and the share of the peak: the time that they
would take at the measured peaks of this machine (a large product, a large copy), over the time they take. Above
100 % the data came from the processor's caches, or something else ran while the peaks were measured. The least time is
that at the peaks.

What lies outside operators is the time of a run without the profiler less theirs. The profiler adds about a microsecond
to each operator, and drives some data of small models out of the caches: this can be below zero.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import onnxruntime

from bench.arguments import add_bundle, count
from bench.decoding import Batch, Graphs
from bench.frame import ArgumentError, Figures, in_turn
from bench.roofline.costs import Array, Cost, Keys, Peak, cost
from bench.roofline.peaks import measure_peaks
from bench.sentences import Sentences, random_sentences
from dragoman.bundle import DECODER, ENCODER, Bundle
from service.runtime.host import DecoderSession, EncoderSession
from service.runtime.sessions import open_graph
from service.runtime.slots import DecoderStep, SlotTable

_GROUPS: Final = {"products": "products", "attentions": "attentions", "other": "other operators"}
WARM_UP_ROUNDS: Final = 2  # do not count
_FASTER: Final = 0.25
_ROUNDED_OFF_US: Final = 0.5  # the profiler gives whole microseconds, rounded down


class Shape(NamedTuple):
    """What is run, in rounds of `target` runs, in turn without the profiler and with it.

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

    def sentences(self, bundle: Bundle, limit: int = 1) -> Sentences:
        """Draw a sentence for each row: time depends on the number of its tokens alone."""
        return random_sentences(bundle.manifest, [self.source] * self.rows, [limit] * self.rows)

    def typical(self, us: Sequence[float]) -> float:
        """Estimate the microseconds of a run on an idle processor: at each token the faster rounds' time."""
        rounds = np.array(us).reshape(self.rounds, self.target)
        return float(np.quantile(rounds[WARM_UP_ROUNDS:], _FASTER, axis=0).mean())


class Operator(NamedTuple):
    """All operators of a graph that have one label: their cost, number and microseconds in one run."""

    cost: Cost
    calls: int
    us: float


class Profile(NamedTuple):
    """One graph; `wall_us` is of a run, called as the engine calls it, without the profiler."""

    graph: str
    wall_us: float
    operators: list[Operator]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_bundle(parser)
    add = parser.add_argument
    add("--rows", type=count, default=32, metavar="N", help="sentences at a time (%(default)s)")
    add("--source", type=count, default=10, metavar="N", help="tokens of each source (%(default)s)")
    add("--target", type=count, default=10, metavar="N", help="tokens decoded of each (%(default)s)")
    add("--runs", type=count, default=300, metavar="N", help="measured runs of each graph (%(default)s)")


def measure(arguments: argparse.Namespace) -> Figures:
    bundle, peaks = Bundle.open(arguments.bundle), measure_peaks()
    shape = Shape(arguments.rows, arguments.source, arguments.target, arguments.runs)
    for name, most in (("source", bundle.manifest.max_source_tokens), ("target", bundle.manifest.max_target_tokens)):
        if (value := getattr(shape, name)) > most:
            raise ArgumentError(f"argument --{name}: must be at most {most}, not {value}")
    with tempfile.TemporaryDirectory() as folder:
        profiles = [
            profile(bundle, shape, Path(folder, profile.__name__)) for profile in (profile_encoder, profile_decoder)
        ]
    return {
        "bundle": f"{bundle.manifest.name}, {bundle.manifest.precision}",
        "run": {name: value for name, value in shape._asdict().items() if name != "runs"},
        "peaks, G multiply-adds/s": {"int8": peaks["int8_product"] / 1e9, "fp32": peaks["fp32_product"] / 1e9},
        "peak of a copy, GB/s read and written": peaks["copy"] / 1e9,
        "engine's step beyond the decoder's run, us": engine_python_us(bundle, shape),
        "operators": [row for each in profiles for row in operator_rows(each, peaks)],
        "whole": [row for each in profiles for row in total_rows(each, peaks)],
    }


def operator_rows(profile: Profile, peaks: Mapping[Peak, float]) -> list[Figures]:
    return [
        {
            "graph": profile.graph,
            "operator": each.cost.label,
            "calls": each.calls,
            "us": each.us,
            "share": f"{each.us / profile.wall_us:.1%}",
            "M multiply-adds": each.cost.multiply_adds / 1e6,
            "MB": each.cost.bytes / 1e6,
            "G/s": each.cost.multiply_adds / each.us / 1e3,
            "GB/s": each.cost.bytes / each.us / 1e3,
            "of peak": f"{each.cost.least_s(peaks) * 1e6 / each.us:.0%}",
        }
        for each in profile.operators
    ]


def total_rows(profile: Profile, peaks: Mapping[Peak, float]) -> list[Figures]:
    """Sum up each group of operators, and what lies outside all."""
    rows = []
    for group, name in _GROUPS.items():
        own = [each for each in profile.operators if each.cost.group == group]
        rows.append((name, sum(each.us for each in own), sum(each.cost.least_s(peaks) * 1e6 for each in own)))
    rows.append(("outside operators", profile.wall_us - sum(us for _, us, _ in rows), 0.0))
    rows.append(("all", profile.wall_us, sum(least_us for *_, least_us in rows)))
    return [
        {"graph": profile.graph, "part": part, "us": us, "share": f"{us / profile.wall_us:.1%}", "least us": least}
        for part, us, least in rows
    ]


def profile_encoder(bundle: Bundle, shape: Shape, file: Path) -> Profile:
    """Run the encoder over a micro-batch of all rows."""
    plain, profiled = (EncoderSession(bundle) for _ in range(2))
    profiled.session = session = open_graph(bundle, ENCODER, profile=file)
    sources = shape.sentences(bundle).sources

    def a_round(encoder: EncoderSession) -> list[float]:
        return [_timed_us(lambda: encoder.encode(sources)) for _ in range(shape.target)]

    keys = Keys(own=shape.source, source=shape.source)
    return _profile("encoder", shape, keys, [partial(a_round, each) for each in (plain, profiled)], session)


def profile_decoder(bundle: Bundle, shape: Shape, file: Path) -> Profile:
    """Run the decoder step over all rows, as the engine does: caches written in place, every output bound."""
    memories = EncoderSession(bundle).encode(shape.sentences(bundle).sources)
    slots = SlotTable(bundle.manifest, shape.rows)
    # The whole output layer, whether there is a shortlist or not: its candidates are another graph.
    plain, profiled = (DecoderSession(bundle, shortlist=False) for _ in range(2))
    profiled.session = session = open_graph(bundle, DECODER, profile=file)

    def a_round(step: DecoderStep) -> list[float]:
        """Decode all rows from their start."""
        for row, memory in enumerate(memories):
            slots.fill(row, memory)
        walls_us = []
        for _ in range(shape.target):
            walls_us.append(_timed_us(lambda: step.run(shape.rows)))
            slots.commit(shape.rows)
        return walls_us

    keys = Keys(own=(1 + shape.target) / 2, source=shape.source)
    rounds = [partial(a_round, DecoderStep(each.session, each.search, slots)) for each in (plain, profiled)]
    return _profile("decoder", shape, keys, rounds, session)


def _profile(
    graph: str,
    shape: Shape,
    keys: Keys,
    rounds: Sequence[Callable[[], list[float]]],
    session: onnxruntime.InferenceSession,
) -> Profile:
    """Run rounds without and with the profiler in turn, so that both see the same weather.

    Args:
        rounds: each gives the microseconds of its runs; the session is that of the second.
    """
    plain_us, _ = in_turn(rounds, shape.rounds)
    events = json.loads(Path(session.end_profiling()).read_text())
    return Profile(graph, shape.typical(list(chain(*plain_us))), summarize(events, keys, shape))


def summarize(events: Iterable[dict[str, Any]], keys: Keys, shape: Shape) -> list[Operator]:
    """Put operators of one label together, those that take the longest first."""
    runs = shape.rounds * shape.target
    us: dict[str, list[float]] = defaultdict(lambda: [0.0] * runs)
    costs: dict[str, list[Cost]] = defaultdict(list)
    run = 0
    for event in events:
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            call = _call(event["args"], keys)
            us[call.label][run] += event["dur"] + _ROUNDED_OFF_US
            if run == 0:
                costs[call.label].append(call)
        elif event["name"] == "model_run":  # noted when the run has ended
            run += 1
    found = [
        Operator(sum(calls[1:], start=calls[0]), len(calls), shape.typical(us[label])) for label, calls in costs.items()
    ]
    return sorted(found, key=lambda each: -each.us)


def _call(arguments: Mapping[str, Any], keys: Keys) -> Cost:
    inputs, outputs = (
        [Array(kind, tuple(shape)) for each in arguments[f"{side}_type_shape"] for kind, shape in each.items()]
        for side in ("input", "output")
    )
    return cost(arguments["op_name"], inputs, outputs, keys)


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
        batch.submit(shape.sentences(bundle, limit))
        batch.step()
        while batch.active:
            before, full = batch.steps, batch.active == shape.rows
            wall_us = _timed_us(batch.step)
            if full and batch.active == shape.rows:
                beyond.append(wall_us - (batch.steps - before).seconds * 1e6)
    return statistics.median(beyond) if beyond else None


def _timed_us(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e6
