"""What a server does under several times the load that it can take; prints a table of targets. Linux only.

    python -m bench.overload [--factor 5] [--storm 60] [--json OUT] [--plot OUT] [-- arguments of serve]

Two servers are started. The first shows how many requests a second it answers when busy clients wait for it, and the
p95 of an open loop at 80 % of that. The second, told how long requests may wait, is put under that load, then for a
minute under several times the sustainable rate, as an open loop, then under the former again. Then the first shows
once more what it can do: the storm is held to the mean, for the speed of a machine is not the same all the time.
Caches are off. The generator runs in this process, on the last of the cores that it is given; the servers have the
others. Several texts a request keep it from being what is measured.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from bench.arguments import add_serve, count, input_file, make_parser, output_file, positive, whole
from bench.files import write_json
from bench.load.report import GENERATOR_WARNING
from bench.load.texts import DataFileError, read_data_file
from bench.log import log_with_time
from bench.machine import environment, now
from bench.overload.drive import Plan, drive
from bench.overload.targets import as_table, check
from bench.server_process import ServerError
from dragoman.arguments import Parser
from dragoman.exit_codes import EXIT_FAILED, EXIT_OK


def main(argv: list[str]) -> int:
    """Run the storm and print what came of it."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    try:
        texts = read_data_file(arguments.data).texts
    except DataFileError as error:
        parser.error(str(error))
    started = now()
    where = environment()
    try:
        storm = drive(_plan(arguments, texts), log_with_time())
    except ServerError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return EXIT_FAILED
    checks = check(storm.figures)
    print(_outcomes(storm.report))
    print(as_table(checks))
    context = {"date": started, "settings": vars(arguments), "environment": where}
    report = {**context, **storm.report, "checks": [one._asdict() for one in checks]}
    write_json(arguments.json, report)
    if arguments.plot:
        from bench.overload.plot import plot  # here: matplotlib takes a second

        plot(report, arguments.plot)
    return EXIT_OK if all(one.passed for one in checks) else EXIT_FAILED


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = make_parser("python -m bench.overload", __doc__)
    add = parser.add_argument
    default = Path("models/en-de/checkpoint/parity.tsv")
    add(
        "--data", type=input_file, default=default, metavar="FILE", help="source<TAB>target or text lines (%(default)s)"
    )
    add("--texts-per-request", type=count, default=64, metavar="T", help="texts per request (%(default)s)")
    add("--factor", type=positive, default=5.0, metavar="F", help="storm, in sustainable rates (%(default)g)")
    add("--peak", type=positive, default=30.0, metavar="S", help="seconds to find the sustainable rate (%(default)g)")
    add("--steady", type=positive, default=15.0, metavar="S", help="seconds at 80 %% of it (%(default)g)")
    add("--storm", type=positive, default=60.0, metavar="S", help="seconds of the storm (%(default)g)")
    add(
        "--delay-share",
        type=positive,
        default=0.5,
        metavar="P",
        help="--max-delay-s of the server in the storm, as a share of the p95 at 80 %% (%(default)g)",
    )
    add("--timeout", type=positive, default=10.0, metavar="S", help="of each request (%(default)g)")
    add("--seed", type=whole, default=0, metavar="N", help="of the arrivals (%(default)s)")
    add("--json", type=output_file, metavar="OUT", help="write all figures to this file")
    add("--plot", type=output_file, metavar="OUT", help="draw the storm into this PNG")
    add_serve(parser)
    return parser


def _plan(arguments: argparse.Namespace, texts: list[str]) -> Plan:
    return Plan(
        texts=texts,
        texts_per_request=arguments.texts_per_request,
        factor=arguments.factor,
        peak_s=arguments.peak,
        steady_s=arguments.steady,
        storm_s=arguments.storm,
        delay_share=arguments.delay_share,
        timeout_s=arguments.timeout,
        seed=arguments.seed,
        serve=arguments.serve,
    )


def _outcomes(report: dict[str, Any]) -> str:
    """Say what became of the requests, by code, and whether the generator kept pace."""
    counts = ", ".join(f"{count:,} {name}" for name, count in report["outcomes"].items() if count)
    lines = [f"requests: {counts}"]
    lines += [f"  {one['count']:,} {one['code']} {one['reason']}: {one['message']}" for one in report["errors"]]
    late = f"p95 {report['p95_send_delay_ms']:.1f} ms, max {report['max_send_delay_ms']:.1f} ms"
    lines.append(f"generator's lateness: {late}")
    return "\n".join([*lines, f"warning: {GENERATOR_WARNING}"] if report["generator_limited"] else lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
