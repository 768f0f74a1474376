"""What a server does under several times the load that it can take; prints a table of targets. Linux only.

    python -m bench overload [--factor 5] [--storm 60] [--json OUT] [--plot OUT] [-- arguments of serve]

Two servers are started. The first shows how many requests a second it answers when busy clients wait for it, and the
p95 of an open loop at 80 % of that. The second, told how long requests may wait, is put under that load, then for a
minute under several times the sustainable rate, as an open loop, then under the former again. Then the first shows
once more what it can do: the storm is held to the mean, for the speed of a machine is not the same all the time.
Caches are off. The generator runs in this process, on the last of the cores that it is given; the servers have the
others. Several texts a request keep it from being what is measured.
"""

import argparse
from pathlib import Path

from bench.arguments import add_serve, count, input_file, output_file, positive, whole
from bench.frame import Figures
from bench.load.report import GENERATOR_WARNING
from bench.load.texts import read_data_file
from bench.log import log_with_time
from bench.overload.drive import Plan, drive
from bench.overload.targets import check


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    default = Path("models/en-de/checkpoint/parity.tsv")
    add(
        "--data", type=input_file, default=default, metavar="FILE", help="source<TAB>target or text lines (%(default)s)"
    )
    add("--texts-per-request", type=count, default=64, metavar="T", help="texts per request (%(default)s)")
    add("--factor", type=positive, default=5.0, metavar="F", help="storm, in sustainable rates (%(default)g)")
    add(
        "--peak",
        dest="peak_s",
        type=positive,
        default=30.0,
        metavar="S",
        help="s to find that rate (%(default)g)",
    )
    add(
        "--steady",
        dest="steady_s",
        type=positive,
        default=15.0,
        metavar="S",
        help="s at 80 %% of it (%(default)g)",
    )
    add("--storm", dest="storm_s", type=positive, default=60.0, metavar="S", help="s of the storm (%(default)g)")
    add(
        "--delay-share",
        type=positive,
        default=0.5,
        metavar="P",
        help="--max-delay-s of the server in the storm, as a share of the p95 at 80 %% (%(default)g)",
    )
    add("--timeout", dest="timeout_s", type=positive, default=10.0, metavar="S", help="of each request (%(default)g)")
    add("--seed", type=whole, default=0, metavar="N", help="of the arrivals (%(default)s)")
    add("--plot", type=output_file, metavar="OUT", help="draw the storm into this PNG")
    add_serve(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    texts = read_data_file(arguments.data).texts
    plan = {name: value for name, value in vars(arguments).items() if name in Plan.__dataclass_fields__}
    storm = drive(Plan(texts=texts, **plan), log_with_time())
    checks, report = check(storm.figures), storm.report
    if arguments.plot:
        from bench.overload.plot import plot  # here: matplotlib takes a second

        plot(report, arguments.plot)
    return {
        "requests": {name: count for name, count in report["outcomes"].items() if count},
        "errors": report["errors"] or None,
        "lateness of the generator, ms": {"p95": report["p95_send_delay_ms"], "max": report["max_send_delay_ms"]},
        "warning": GENERATOR_WARNING if report["generator_limited"] else None,
        "targets": [
            {"": each.name, "target": each.target, "measured": each.measured, "passed": each.passed} for each in checks
        ],
        "checks": {each.name: each.passed for each in checks},
        "details": report,
    }
