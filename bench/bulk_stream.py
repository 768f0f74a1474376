"""Many texts over one call of BatchTranslateText: does memory stay flat, and is each answered once? Linux only.

    dragoman bench bulk-stream [--count 1000000] [--bundle models/en-de/bundle] [--json OUT]

Starts a server, streams that many short sentences, all different, through `Client.translate_many`, and prints on the
way how many were answered, how fast, and what is resident of the server and of this process, the client.
"""

import argparse
import os
import sys
import time
from typing import Final

import numpy as np

from bench import frame
from bench.arguments import add_bundle, whole
from bench.frame import ArgumentError, Figures
from bench.memory import resident_mib
from bench.server_process import running, serve_command
from dragoman import Client
from dragoman.bundle import Bundle

SAMPLES: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=whole, default=1_000_000, metavar="N", help="texts (%(default)s)")
    add_bundle(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    count = arguments.count
    if count < SAMPLES:
        raise ArgumentError(f"needs --count {SAMPLES} or more")
    times, errors = np.zeros(count, np.uint8), 0  # how often each text was answered
    texts = (f"Tom bought {number} books, and then he read them all." for number in range(count))
    rows, model = list[Figures](), Bundle.open(arguments.bundle).manifest.name
    with running(serve_command("--models", arguments.bundle)) as server, Client(server.address) as client:
        start_s = time.perf_counter()
        answers = client.translate_many(texts, model=model)
        for answered, (index, translation) in enumerate(answers, start=1):
            times[index] += 1
            errors += translation.error is not None
            if answered % (count // SAMPLES) == 0:
                memory = {"server_mib": resident_mib(server.process.pid), "client_mib": resident_mib(os.getpid())}
                rows.append({"texts": answered, "texts_per_s": answered / (time.perf_counter() - start_s), **memory})
                print(frame.as_text(rows[-1]), file=sys.stderr)
    once = int((times == 1).sum())
    checks = {"each text is answered once": once == count, "no text has an error": not errors}
    return {"answered_once": once, "errors": errors, "rows": rows, "checks": checks}
