"""What replicas cost, and how calls are spread over many; prints tables. Linux only.

    python -m bench.replicas [--json OUT] [--plot OUT]

Measured, in one run: servers of one thread, each on one core, translate calls of one sentence, with all caches off.
What a call costs is processor time of the server: of single sentences on an idle server, beside more and more others,
of a refused call, and of one and two replicas. The load comes from this process and shares the cores, so that calls a
second say less.

Simulated, from these figures: fleets of such replicas at 80 % of what they can do, all alike and with a tenth of them
at half the speed, and in a storm of three times what they can do, under ways of balancing. Calls in a replica share its
core, as many as it has slots; further ones wait, and are refused by the server's own rule and its estimate. A second is
a second of a core that nobody else uses, and the network takes no time.
"""

import argparse
import sys
from pathlib import Path

from bench.arguments import add_bundle, add_json, count, counts, input_file, make_parser, output_file, positive, whole
from bench.files import write_json
from bench.load.texts import DataFileError, read_data_file
from bench.log import log_with_time
from bench.machine import machine, now
from bench.replicas.measure import Measured, measure
from bench.replicas.report import as_markdown
from bench.replicas.scenarios import SLOW_SHARE, Steady, Storm, steady, storms
from bench.server_process import ServerError
from dragoman.arguments import Parser
from dragoman.errors import BundleError
from dragoman.exit_codes import EXIT_FAILED, EXIT_OK


def main(argv: list[str]) -> int:
    """Measure, simulate and print.

    Returns:
        0; 1 when a server did not start.

    Raises:
        SystemExit: With 2, after one line on stderr, when an argument or a file is no good.
    """
    parser = build_parser()
    arguments = parser.parse_args(argv)
    try:
        texts = read_data_file(arguments.data).texts[: arguments.sentences]
    except DataFileError as error:
        parser.error(str(error))
    log, started = log_with_time(), now()
    try:
        measured = measure(arguments.bundle, texts, arguments.seconds, arguments.rounds, log)
    except BundleError as error:
        parser.error(str(error))
    except ServerError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return EXIT_FAILED
    log("simulating")
    calm = list(steady(measured, arguments.fleets, arguments.seed))
    some = [fleet for fleet in arguments.fleets if 10 <= fleet <= 100]  # those of 1,000 would take minutes more
    calm += steady(measured, some, arguments.seed, SLOW_SHARE)
    wild = list(storms(measured, arguments.fleets, arguments.seed))
    log("done")
    _report(arguments, started, measured, calm, wild)
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = make_parser("python -m bench.replicas", __doc__)
    add = parser.add_argument
    default = Path("models/en-de/checkpoint/parity.tsv")
    add(
        "--data", type=input_file, default=default, metavar="FILE", help="source<TAB>target or text lines (%(default)s)"
    )
    add("--sentences", type=count, default=200, metavar="N", help="of the file, from the first on (%(default)s)")
    add("--seconds", type=positive, default=1.5, metavar="S", help="of each load (%(default)g)")
    add("--rounds", type=count, default=5, metavar="N", help="of each load; the cheapest counts (%(default)s)")
    add("--fleets", type=counts, default=[1, 10, 100, 1000], metavar="N,...", help="replicas to simulate")
    add("--seed", type=whole, default=0, metavar="N", help="of the simulation (%(default)s)")
    add("--plot", type=output_file, metavar="OUT", help="draw all of it into this PNG")
    add_bundle(parser)
    add_json(parser)
    return parser


def _report(
    arguments: argparse.Namespace, started: str, measured: Measured, calm: list[Steady], wild: list[Storm]
) -> None:
    print(as_markdown(measured, calm, wild))
    report = {
        "date": started,
        "machine": machine(),
        "settings": vars(arguments),
        "sentences": [each._asdict() for each in measured.sentences],
        "occupancies": [each._asdict() for each in measured.occupancies],
        "refusal_s": measured.refusal_s,
        "scales": [each._asdict() for each in measured.scales],
        "steady": [each._asdict() for each in calm],
        "storms": [each._asdict() for each in wild],
    }
    write_json(arguments.json, report)
    if arguments.plot:
        from bench.replicas.plot import plot  # here: matplotlib takes a second

        plot(measured, calm, arguments.plot)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
