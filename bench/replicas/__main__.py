"""What one and two replicas cost, in processor time of the server. Linux only.

    python -m bench.replicas [--json OUT]

Servers of one thread, each on one core, translate calls of one sentence, with all caches off: single sentences on an
idle server, beside more and more others, calls that are refused, and one and two replicas in turn. The load comes
from this process and shares the cores, so that calls a second say less.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from bench import frame
from bench.arguments import add_bundle, count, input_file, positive
from bench.frame import Figures
from bench.load.texts import read_data_file
from bench.log import log_with_time
from bench.replicas.measure import measure


def main(argv: list[str]) -> int:
    """Measure replicas."""
    return frame.run("python -m bench.replicas", __doc__, _add_arguments, _measure, argv)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add, default = parser.add_argument, Path("models/en-de/checkpoint/parity.tsv")
    add("--data", type=input_file, default=default, metavar="FILE", help="pairs or text lines (%(default)s)")
    add("--sentences", type=count, default=200, metavar="N", help="of the file, from the first on (%(default)s)")
    add("--seconds", type=positive, default=1.5, metavar="S", help="of each load (%(default)g)")
    add("--rounds", type=count, default=5, metavar="N", help="of each load; the cheapest counts (%(default)s)")
    add_bundle(parser)


def _measure(arguments: argparse.Namespace) -> Figures:
    texts = read_data_file(arguments.data).texts[: arguments.sentences]
    found = measure(arguments.bundle, texts, arguments.seconds, arguments.rounds, log_with_time())
    alone_ms = np.percentile([1e3 * each.alone_s for each in found.sentences], [5, 50, 95]).tolist()
    return {
        "sentences": len(found.sentences),
        "alone_ms_p5_p50_p95": alone_ms,
        "refusal_ms": 1e3 * found.refusal_s,
        "occupancies": [
            {"clients": each.clients, "calls inside": each.inside, "cpu_ms": 1e3 * each.cost_s}
            for each in found.occupancies
        ],
        "replicas": [
            {"replicas": each.replicas, "cpu_ms": 1e3 * each.cost_s, "calls_per_s": each.calls_per_s}
            for each in found.scales
        ],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
