"""The command `dragoman bench roofline`: where an encoder run and a decode step spend their time, and what is left.

Both graphs run as they are served, on one thread and with caches written in place, under onnxruntime's profiler.
Beside the time of each operator stand its multiply-adds and bytes, and the share of the peak: the time that they
would take at the measured peaks of this machine (a large product, a large copy), over the time they take. Above
100 % the data came from the processor's caches. A share above 200 % is not shown: then something else ran on this
machine while its peaks were measured, and nothing that rests on them can be trusted.

What lies outside operators is the time of a run without the profiler less theirs. The profiler drives some data of
small models out of the caches, which makes their operators look a little slower, and can bring this below zero.
"""

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bench import frame
from bench.arguments import add_bundle
from bench.frame import ArgumentError, Figures
from bench.roofline.costs import Peak
from bench.roofline.peaks import measure_peaks, measure_profiler
from bench.roofline.profile import Operator, Profile, Shape, engine_python_us, profile_decoder, profile_encoder
from dragoman.arguments import Parser
from dragoman.bundle import Bundle

# The processor's caches explain somewhat more than 100 %, but not more than this.
_MOST_SHARE: Final = 2.0
_GROUPS: Final = {"products": "products", "attentions": "attentions", "other": "other operators"}
_PROGRAM: Final = "dragoman bench roofline"


def main(argv: list[str]) -> int:
    return frame.run(_PROGRAM, __doc__, _add_arguments, _measure, argv)


def build_parser() -> Parser:
    return frame.parser_of(_PROGRAM, __doc__, _add_arguments)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_bundle(parser)
    add = parser.add_argument
    add("--rows", type=int, default=32, metavar="N", help="sentences at a time (%(default)s)")
    add("--source", type=int, default=10, metavar="N", help="tokens of each source (%(default)s)")
    add("--target", type=int, default=10, metavar="N", help="tokens decoded of each (%(default)s)")
    add("--runs", type=int, default=300, metavar="N", help="measured runs of each graph (%(default)s)")


def _measure(arguments: argparse.Namespace) -> Figures:
    bundle = Bundle.open(arguments.bundle)
    report = measure(bundle, _shape(arguments, bundle))
    return {**summary(report), "details": report}


def _shape(arguments: argparse.Namespace, bundle: Bundle) -> Shape:
    limits = {
        "rows": 4096,
        "source": bundle.manifest.max_source_tokens,
        "target": bundle.manifest.max_target_tokens,
        "runs": 100_000,
    }
    values = {name: getattr(arguments, name) for name in limits}
    for name, value in values.items():
        if not 1 <= value <= limits[name]:
            raise ArgumentError(f"--{name} must be from 1 to {limits[name]}, not {value}")
    return Shape(**values)


def measure(bundle: Bundle, shape: Shape) -> dict[str, Any]:
    """Measure the peaks, then both graphs.

    Returns:
        The figures, their units in their names, ready for JSON.
    """
    peaks, profiler = measure_peaks(), measure_profiler()
    with tempfile.TemporaryDirectory() as folder:
        profiles = [profile(bundle, shape, profiler, Path(folder)) for profile in (profile_encoder, profile_decoder)]
    return {
        "bundle": bundle.manifest.name,
        "precision": bundle.manifest.precision,
        **asdict(shape),
        "peaks_per_s": peaks,
        "profiler": profiler._asdict(),
        "engine_python_us": engine_python_us(bundle, shape),
        "graphs": {profile.graph: describe(profile, peaks) for profile in profiles},
    }


def describe(profile: Profile, peaks: Mapping[Peak, float]) -> dict[str, Any]:
    operators = profile.operators
    at_peak_us = {
        group: sum(each.cost.least_s(peaks) * 1e6 for each in operators if each.cost.group == group)
        for group in _GROUPS
    }
    return {
        "wall_us": profile.wall_us,
        "operators_us": profile.operators_us,
        "outside_operators_us": profile.wall_us - profile.operators_us,
        "groups_us": {group: sum(each.us for each in operators if each.cost.group == group) for group in _GROUPS},
        "groups_at_peak_us": at_peak_us,
        "multiply_adds": sum(each.cost.multiply_adds for each in operators),
        "bytes": sum(each.cost.bytes for each in operators),
        "operators": [_figures(each, profile.wall_us, peaks) for each in operators],
    }


def _figures(operator: Operator, wall_us: float, peaks: Mapping[Peak, float]) -> dict[str, Any]:
    cost = operator.cost
    return {
        "operator": cost.label,
        "group": cost.group,
        "calls": operator.calls,
        "us": operator.us,
        "share": operator.us / wall_us,
        "multiply_adds": cost.multiply_adds,
        "bytes": cost.bytes,
        "multiply_adds_per_s": cost.multiply_adds / operator.us * 1e6,
        "bytes_per_s": cost.bytes / operator.us * 1e6,
        "share_of_peak": share if (share := cost.least_s(peaks) * 1e6 / operator.us) <= _MOST_SHARE else None,
    }


def summary(report: Mapping[str, Any]) -> Figures:
    """Choose the figures for people: microseconds are of one run, shares of its whole time."""
    peaks, graphs = report["peaks_per_s"], report["graphs"].items()
    operators = [(name, each) for name, graph in graphs for each in graph["operators"]]
    unreliable = any(each["share_of_peak"] is None for _, each in operators)
    return {
        "bundle": f"{report['bundle']}, {report['precision']}",
        "run": {name: report[name] for name in ("rows", "source", "target")},
        "peaks, G multiply-adds/s": {name: peaks[f"{name}_product"] / 1e9 for name in ("int8", "fp32")},
        "peak of a copy, GB/s read and written": peaks["copy"] / 1e9,
        "taken off each operator for the profiler, us": report["profiler"],
        "engine's step beyond the decoder's run, us": report["engine_python_us"],
        "unreliable": f"shares above {_MOST_SHARE:.0%} of a peak; try an idle machine" if unreliable else None,
        "operators": [{"graph": name, **_row(each)} for name, each in operators],
        "whole": [{"graph": name, **row} for name, graph in graphs for row in _totals(graph)],
    }


def _row(figures: Mapping[str, Any]) -> Figures:
    row = {
        "operator": figures["operator"],
        "calls": figures["calls"],
        "us": figures["us"],
        "share": f"{figures['share']:.1%}",
        "M multiply-adds": figures["multiply_adds"] / 1e6,
        "MB": figures["bytes"] / 1e6,
    }
    if figures["share_of_peak"] is None:
        return row
    return {
        **row,
        "G/s": figures["multiply_adds_per_s"] / 1e9,
        "GB/s": figures["bytes_per_s"] / 1e9,
        "of peak": f"{figures['share_of_peak']:.0%}",
    }


def _totals(graph: Mapping[str, Any]) -> list[Figures]:
    at_peak_us = graph["groups_at_peak_us"]
    parts = [(_GROUPS[group], us, at_peak_us[group]) for group, us in graph["groups_us"].items()]
    parts.append(("outside operators", graph["outside_operators_us"], None))
    parts.append(("all", graph["wall_us"], sum(at_peak_us.values())))
    return [
        {"part": name, "us": us, "share": f"{us / graph['wall_us']:.1%}", "at the peaks, us": least_us}
        for name, us, least_us in parts
    ]
