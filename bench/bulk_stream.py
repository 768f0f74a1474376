"""Many texts over one call of BatchTranslateText: does memory stay flat, and is each answered once? Linux only.

    python -m bench.bulk_stream [--count 1000000] [--bundle models/en-de/bundle] [--as-ready] [--json OUT]

Starts a server, streams that many short sentences, all different, through `Client.translate_many`, and prints on the
way how many were answered, how fast, and what is resident of the server and of this process, the client.
"""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from bench.arguments import add_bundle, add_json, make_parser, whole
from bench.files import write_json
from bench.machine import now
from bench.memory.process import resident_mib
from bench.memory.trend import growth
from bench.server_process import ServerError, running, serve_command
from dragoman import Client, DragomanError
from dragoman.bundle import Bundle
from dragoman.exit_codes import EXIT_OK

EXIT_BAD_ANSWERS = 1
SAMPLES: Final = 20
_SUBJECTS = ("Tom", "Mary", "My brother", "Our teacher", "The old man", "A young woman", "Nobody")
_VERBS = ("bought", "found", "lost", "counted", "sold", "forgot", "painted", "hid", "wanted", "stole", "saw")
_OBJECTS = ("books", "apples", "red cars", "letters", "houses", "small dogs", "bottles of water", "photos", "keys")
_ENDINGS = (".", " yesterday.", " in the garden.", " before dinner.", "!", " because it was late.")


class Sample(NamedTuple):
    """The state after a number of answers.

    Attributes:
        texts: answered so far.
        seconds: since the first was sent.
        server_mib: resident of the server.
        client_mib: resident of this process.
    """

    texts: int
    seconds: float
    server_mib: float
    client_mib: float


def main(argv: list[str]) -> int:
    """Run the stream and print what it found.

    Returns:
        0; 1 when a text was not answered exactly once and without an error.

    Raises:
        SystemExit: With 2, after one line on stderr, when an argument is no good or the server failed.
    """
    parser = make_parser("python -m bench.bulk_stream", __doc__)
    parser.add_argument("--count", type=whole, default=1_000_000, metavar="N", help="texts (%(default)s)")
    add_bundle(parser)
    parser.add_argument("--as-ready", action="store_true", help="take the answers as they are ready, not in order")
    add_json(parser)
    arguments = parser.parse_args(argv)
    if arguments.count < SAMPLES:
        parser.error(f"needs --count {SAMPLES} or more")
    try:
        report = run(arguments.bundle, arguments.count, in_order=not arguments.as_ready)
    except (ServerError, DragomanError) as error:
        parser.error(str(error))
    print(to_text(report))
    write_json(arguments.json, report)
    return EXIT_OK if report["answered_once"] == report["count"] and not report["errors"] else EXIT_BAD_ANSWERS


def run(bundle: Path, count: int, *, in_order: bool) -> dict[str, Any]:
    """Stream the texts through a server of its own.

    Returns:
        The figures, ready for JSON.

    Raises:
        ServerError: the server ended or was not ready in time.
        BundleError: there is no good bundle.
        DragomanError: the call failed.
    """
    date = now()
    times = np.zeros(count, np.uint8)  # how often each text was answered
    samples: list[Sample] = []
    errors, portion = 0, count // SAMPLES
    model = Bundle.open(bundle).manifest.name
    with running(serve_command("--models", bundle)) as server, Client(server.address) as client:
        start_s = time.perf_counter()
        answers = client.translate_many(sentences(count), model=model, in_order=in_order)
        for answered, (index, translation) in enumerate(answers, start=1):
            times[index] += 1
            errors += translation.error is not None
            if answered % portion == 0:
                memory = resident_mib(server.process.pid), resident_mib(os.getpid())
                samples.append(Sample(answered, time.perf_counter() - start_s, *memory))
                print(_row(samples[-1]), file=sys.stderr)
    return {
        "date": date,
        "count": count,
        "in_order": in_order,
        "answered_once": int((times == 1).sum()),
        "errors": errors,
        "texts_per_s": samples[-1].texts / samples[-1].seconds,
        "server_mib_per_100000": _growth(samples, "server_mib"),
        "client_mib_per_100000": _growth(samples, "client_mib"),
        "samples": [sample._asdict() for sample in samples],
    }


def sentences(count: int) -> Iterator[str]:
    """Yield short sentences that all differ, a number in each."""
    for number in range(count):
        # Lengths without a common factor: the same words rarely stand side by side.
        words = (part[number % len(part)] for part in (_SUBJECTS, _VERBS, _OBJECTS, _ENDINGS))
        subject, verb, things, ending = words
        yield f"{subject} {verb} {number} {things}{ending}"


def _growth(samples: list[Sample], field: str) -> float | None:
    texts = [sample.texts for sample in samples]
    return growth(texts, [getattr(sample, field) for sample in samples], per=100_000)


def to_text(report: dict[str, Any]) -> str:
    """Write the figures for people."""
    order = "in order" if report["in_order"] else "as ready"
    return (
        f"{report['count']} texts, {order}: {report['answered_once']} answered exactly once, "
        f"{report['errors']} errors, {report['texts_per_s']:.0f} texts/s\n"
        f"MiB for each 100,000 texts after the first tenth: server {report['server_mib_per_100000']:+.2f}, "
        f"client {report['client_mib_per_100000']:+.2f}"
    )


def _row(sample: Sample) -> str:
    rate = sample.texts / sample.seconds
    return (
        f"{sample.texts:10} texts {sample.seconds:8.1f} s {rate:7.0f} texts/s   "
        f"server {sample.server_mib:7.1f} MiB   client {sample.client_mib:7.1f} MiB"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
