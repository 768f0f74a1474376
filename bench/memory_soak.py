"""Does memory stay flat? Random segments through the engine in this process, its memory sampled. Linux with glibc only.

    python -m bench.memory_soak [--bundle models/en-de/bundle] [--segments 100000] [--json OUT]

Sources are of random ids and of lengths from one token to the model's limit, limits of targets are random too, and
one segment in a hundred is cancelled: every shape that a run can have comes up. All sources differ, so the cache of
encoder memories fills to its bound and forgets; the longest segments there are come first, so that slots and
workspaces are as large as they get. After the first tenth nothing may grow: what is allocated shows what is kept, and
what is resident shows, too, the holes between blocks of all sizes that the allocator could not fill.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from typing import Final

import numpy as np
from tqdm import tqdm

from bench import frame
from bench.arguments import add_bundle, count, whole
from bench.frame import ArgumentError, Figures
from bench.memory import allocated_mib, growth, resident_mib, settled
from bench.sentences import random_lengths, random_sentences
from dragoman.bundle import Bundle, Manifest
from service import cores
from service.engine.engine import Engine
from service.queue.mailbox import Mailbox
from service.registry.allocator import share_one_heap
from service.settings import MEGABYTE
from service.telemetry.metrics import Metrics

SAMPLES: Final = 200
CANCELLED_SHARE: Final = 0.01
FIELDS: Final = ("resident_mib", "allocated_mib", "cache_mib", "python_blocks")
_WAITING_PER_SLOT = 2  # beside those in slots: enough that no slot stays empty
_PAUSE_S = 0.001


def main(argv: list[str]) -> int:
    return frame.run("python -m bench.memory_soak", __doc__, _add_arguments, _measure, argv)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_bundle(parser)
    add = parser.add_argument
    add("--segments", type=whole, default=100_000, metavar="N", help="how many (%(default)s)")
    add("--threads", type=count, default=cores.available(), metavar="N", help="of the engine (%(default)s)")
    add("--slots", type=count, default=32, metavar="N", help="of each thread (%(default)s)")
    add("--encoder-cache-mb", type=whole, default=64, metavar="MB", help="kept memories (%(default)s); 0: none")
    add("--seed", type=whole, default=0, metavar="N", help="of all that is random (%(default)s)")


def _measure(arguments: argparse.Namespace) -> Figures:
    if arguments.segments < SAMPLES:
        raise ArgumentError(f"needs --segments {SAMPLES} or more")
    bundle = Bundle.open(arguments.bundle)
    share_one_heap()  # as the server does
    mailbox, metrics = Mailbox(sys.maxsize), Metrics()
    engine = Engine(
        bundle,
        mailbox,
        metrics,
        device="cpu",
        threads=arguments.threads,
        slots=arguments.slots,
        encoder_cache_bytes=arguments.encoder_cache_mb * MEGABYTE,
    )
    start_s = time.perf_counter()
    engine.start()
    try:
        samples = _feed(mailbox, metrics, bundle.manifest, arguments)
        mailbox.wait_idle()
    finally:
        engine.stop()
    engine.ended.result()  # raises what ended a thread, if anything did
    return {
        "duration_s": time.perf_counter() - start_s,
        "target_tokens": metrics.total("target_tokens_total"),
        "memory": summarize(samples),
        "samples": [sample[:2] for sample in samples],
    }


def _feed(mailbox: Mailbox, metrics: Metrics, manifest: Manifest, arguments: argparse.Namespace) -> list[list[float]]:
    """Submit the longest segments there are, then all others as fast as they are decoded; gives the samples."""
    random = np.random.default_rng(arguments.seed)
    most_unfinished = arguments.threads * arguments.slots * (1 + _WAITING_PER_SLOT)
    longest = [manifest.max_source_tokens] * most_unfinished, [manifest.max_target_tokens] * most_unfinished
    mailbox.submit(random_sentences(manifest, *longest, random).decodes())
    mailbox.wait_idle()
    samples, submitted = list[list[float]](), 0
    with tqdm(total=arguments.segments, unit=" segments", disable=not sys.stderr.isatty()) as bar:
        for portion in _portions(arguments.segments):
            sources = random_lengths(random, portion, manifest.max_source_tokens).tolist()
            limits = random_lengths(random, portion, manifest.max_target_tokens).tolist()
            for decode in random_sentences(manifest, sources, limits, random).decodes():
                while mailbox.unfinished >= most_unfinished:
                    time.sleep(_PAUSE_S)
                mailbox.submit([decode])
                if random.random() < CANCELLED_SHARE:
                    mailbox.cancel([decode])
            bar.update(portion)
            submitted += portion
            kept_mib = metrics.total("encoder_memory_cache_bytes") / 2**20
            memory = resident_mib(os.getpid()), allocated_mib(), kept_mib, sys.getallocatedblocks()
            samples.append([submitted, *memory])
    return samples


def _portions(segments: int) -> Iterator[int]:
    size = segments // SAMPLES
    for start in range(0, segments, size):
        yield min(size, segments - start)


def summarize(samples: list[list[float]]) -> list[Figures]:
    """Return how memory changed after the first tenth, a row for each of `FIELDS`."""
    work, *columns = (list(column) for column in zip(*samples, strict=True))
    later = settled(work)
    return [
        {
            "memory": name,
            "after_first_tenth": sizes[later],
            "largest_after_it": max(sizes[later:]),
            "at_end": sizes[-1],
            "per_10000_segments": growth(work, sizes, per=10_000),
        }
        for name, sizes in zip(FIELDS, columns, strict=True)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
