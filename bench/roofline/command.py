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

from bench.arguments import add_bundle, add_json, make_parser
from bench.files import write_json
from bench.machine import now
from bench.roofline.costs import Peak
from bench.roofline.peaks import measure_peaks, measure_profiler
from bench.roofline.profile import Operator, Profile, Shape, engine_python_us, profile_decoder, profile_encoder
from dragoman.arguments import Parser
from dragoman.bundle import Bundle
from dragoman.errors import BundleError
from dragoman.exit_codes import EXIT_OK

# The processor's caches explain somewhat more than 100 %, but not more than this.
_MOST_SHARE: Final = 2.0
_GROUPS: Final = {"products": "products", "attentions": "attentions", "other": "other operators"}
_HEAD = f"{'operator':<40}{'calls':>6}{'us':>9}{'share':>8}{'M madds':>10}{'MB':>8}{'G/s':>8}{'GB/s':>8}{'of peak':>9}"


def main(argv: list[str]) -> int:
    """Measure a bundle and print its tables."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    try:
        bundle = Bundle.open(arguments.bundle)
        report = measure(bundle, _shape(arguments, bundle))
    except (BundleError, ValueError) as error:
        parser.error(str(error))
    print(to_text(report))
    write_json(arguments.json, report)
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = make_parser("dragoman bench roofline", __doc__)
    add_bundle(parser)
    add = parser.add_argument
    add("--rows", type=int, default=32, metavar="N", help="sentences at a time (%(default)s)")
    add("--source", type=int, default=10, metavar="N", help="tokens of each source (%(default)s)")
    add("--target", type=int, default=10, metavar="N", help="tokens decoded of each (%(default)s)")
    add("--runs", type=int, default=300, metavar="N", help="measured runs of each graph (%(default)s)")
    add_json(parser)
    return parser


def _shape(arguments: argparse.Namespace, bundle: Bundle) -> Shape:
    """Check the bounds of the arguments."""
    limits = {
        "rows": 4096,
        "source": bundle.manifest.max_source_tokens,
        "target": bundle.manifest.max_target_tokens,
        "runs": 100_000,
    }
    values = {name: getattr(arguments, name) for name in limits}
    for name, value in values.items():
        if not 1 <= value <= limits[name]:
            raise ValueError(f"--{name} must be from 1 to {limits[name]}, not {value}")
    return Shape(**values)


def measure(bundle: Bundle, shape: Shape) -> dict[str, Any]:
    """Measure the peaks, then both graphs.

    Returns:
        The figures, their units in their names, ready for JSON.

    Raises:
        BundleError: a graph cannot be loaded.
    """
    date = now()
    peaks, profiler = measure_peaks(), measure_profiler()
    with tempfile.TemporaryDirectory() as folder:
        profiles = [profile(bundle, shape, profiler, Path(folder)) for profile in (profile_encoder, profile_decoder)]
    return {
        "date": date,
        "bundle": bundle.manifest.name,
        "precision": bundle.manifest.precision,
        **asdict(shape),
        "peaks_per_s": peaks,
        "profiler": profiler._asdict(),
        "engine_python_us": engine_python_us(bundle, shape),
        "graphs": {profile.graph: describe(profile, peaks) for profile in profiles},
    }


def describe(profile: Profile, peaks: Mapping[Peak, float]) -> dict[str, Any]:
    """Compute the figures of one graph."""
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


def to_text(report: Mapping[str, Any]) -> str:
    """Write the figures for people, microseconds of one run throughout."""
    peaks = report["peaks_per_s"]
    lines = [
        f"{report['bundle']}, {report['precision']}: {report['rows']} rows, {report['source']} source and "
        f"{report['target']} target tokens, one thread",
        f"peaks: int8 product {peaks['int8_product'] / 1e9:.0f}, fp32 product {peaks['fp32_product'] / 1e9:.0f} "
        f"G multiply-adds/s; copy {peaks['copy'] / 1e9:.1f} GB/s, read and written",
        f"taken off each operator for the profiler itself: {report['profiler']['base_us']:.1f} us and "
        f"{report['profiler']['per_array_us']:.2f} us for each input and result",
    ]
    for name, graph in report["graphs"].items():
        lines += ["", f"{name}, one run", _HEAD, *(_row(each) for each in graph["operators"]), *_totals(graph)]
        if any(each["share_of_peak"] is None for each in graph["operators"]):
            lines.append(f"unreliable: shares above {_MOST_SHARE:.0%} of a peak are not shown; try an idle machine")
    if report["engine_python_us"] is not None:
        lines += ["", f"a step of the engine beyond the decoder's run: {report['engine_python_us']:.0f} us"]
    return "\n".join(lines)


def _row(figures: Mapping[str, Any]) -> str:
    head = (
        f"{figures['operator']:<40}{figures['calls']:>6}{figures['us']:>9.1f}{figures['share']:>8.1%}"
        f"{figures['multiply_adds'] / 1e6:>10.2f}{figures['bytes'] / 1e6:>8.2f}"
    )
    if figures["share_of_peak"] is None:
        return f"{head}{'-':>8}{'-':>8}{'-':>9}"
    rates = f"{figures['multiply_adds_per_s'] / 1e9:>8.1f}{figures['bytes_per_s'] / 1e9:>8.1f}"
    return f"{head}{rates}{figures['share_of_peak']:>9.0%}"


def _totals(graph: Mapping[str, Any]) -> list[str]:
    wall_us = graph["wall_us"]
    lines = [
        _total(_GROUPS[group], us, wall_us, f"; at the peaks {graph['groups_at_peak_us'][group]:.1f}")
        for group, us in graph["groups_us"].items()
    ]
    return [
        *lines,
        _total("outside operators", graph["outside_operators_us"], wall_us),
        _total("whole run", wall_us, wall_us, f"; at the peaks {sum(graph['groups_at_peak_us'].values()):.1f}"),
    ]


def _total(name: str, us: float, wall_us: float, rest: str = "") -> str:
    return f"{'= ' + name:<46}{us:>9.1f}{us / wall_us:>8.1%}{rest}"
