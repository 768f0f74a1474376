"""What a server does under several times the load that it can take; prints a table of targets. Linux only.

    dragoman bench overload [--factor 5] [--storm 60] [--json OUT] [--plot OUT] [-- arguments of serve]

Two servers are started. The first shows how many requests a second it answers when busy clients wait for it, and the
p95 of an open loop at 80 % of that. The second, told how long requests may wait, is put under that load, then for a
minute under several times the sustainable rate, as an open loop, then under the former again. Then the first shows
once more what it can do: the storm is held to the mean, for the speed of a machine is not the same all the time.
Caches are off. The generator runs in this process, on the last of the cores that it is given; the servers have the
others. Several texts a request keep it from being what is measured.
"""

import argparse
from pathlib import Path

from bench.arguments import add_serve, count, input_file, positive, whole
from bench.frame import Figures, log_with_time
from bench.load.report import GENERATOR_WARNING
from bench.overload.drive import drive
from dragoman.arguments import output_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    data = Path("models/en-de/checkpoint/parity.tsv")
    add("--data", type=input_file, default=data, metavar="FILE", help="source<TAB>target or text lines (%(default)s)")
    add("--texts-per-request", type=count, default=64, metavar="T", help="texts per request (%(default)s)")
    add("--factor", type=positive, default=5.0, metavar="F", help="storm, in sustainable rates (%(default)g)")
    for name, seconds, help_ in (
        ("peak", 30.0, "s to find that rate"),
        ("steady", 15.0, "s at 80 %% of it"),
        ("storm", 60.0, "s of the storm"),
        ("timeout", 10.0, "of each request"),
    ):
        help_ += " (%(default)g)"
        add(f"--{name}", dest=f"{name}_s", type=positive, default=seconds, metavar="S", help=help_)
    share = "--max-delay-s of the server in the storm, as a share of the p95 at 80 %% (%(default)g)"
    add("--delay-share", type=positive, default=0.5, metavar="P", help=share)
    add("--seed", type=whole, default=0, metavar="N", help="of the arrivals (%(default)s)")
    add("--plot", type=output_file, metavar="OUT", help="draw the storm into this PNG")
    add_serve(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    report = drive(arguments, log_with_time())
    if arguments.plot:
        from bench.overload.plot import plot  # here: matplotlib takes a second

        plot(report, arguments.plot)
    return {
        "requests": {name: count for name, count in report["outcomes"].items() if count},
        "errors": report["errors"] or None,
        "lateness of the generator, ms": {"p95": report["p95_send_delay_ms"], "max": report["max_send_delay_ms"]},
        "warning": GENERATOR_WARNING if report["generator_limited"] else None,
        "targets": report["targets"],
        "checks": {each[""]: each["passed"] for each in report["targets"]},
        "details": report,
    }
