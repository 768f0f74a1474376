"""Does memory stay flat? Random segments through the engine in this process, its memory sampled. Linux with glibc only.

    python -m bench.memory_soak [--bundle models/en-de/bundle] [--segments 100000] [--json OUT]

Sources are of random ids and of lengths from one token to the model's limit, limits of targets are random too, and
one segment in a hundred is cancelled: every shape that a run can have comes up. All sources differ, so the cache of
encoder memories fills to its bound and forgets; the longest segments there are come first, so that slots and
workspaces are as large as they get. After the first tenth nothing may grow: what is allocated shows what is kept, and
what is resident shows, too, the holes between blocks of all sizes that the allocator could not fill.
"""

import os
import sys
import time
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from bench.arguments import add_bundle, add_json, count, make_parser, whole
from bench.files import write_json
from bench.machine import now
from bench.memory.allocator import allocated_mib
from bench.memory.process import resident_mib
from bench.memory.trend import growth, settled
from bench.sentences import random_lengths, random_sentences
from dragoman.bundle import Bundle, Manifest
from dragoman.errors import BundleError
from dragoman.exit_codes import EXIT_OK
from service import cores
from service.engine.engine import Engine
from service.queue.mailbox import Mailbox
from service.registry.allocator import share_one_heap
from service.settings import MEGABYTE
from service.telemetry.metrics import Metrics

SAMPLES: Final = 200
CANCELLED_SHARE: Final = 0.01
# Segments that wait beside those in slots: enough that no slot stays empty.
_WAITING_PER_SLOT = 2
_PAUSE_S = 0.001


class Sample(NamedTuple):
    """The memory after a number of segments.

    Attributes:
        segments: submitted so far.
        resident_mib: of the process.
        allocated_mib: from the C library's allocator, and not given back.
        cache_mib: of encoder memories that are kept; allocated, too.
        python_blocks: of Python's own allocator for small objects.
    """

    segments: float
    resident_mib: float
    allocated_mib: float
    cache_mib: float
    python_blocks: float


@dataclass(frozen=True)
class Soak:
    """What is run.

    Attributes:
        segments: how many.
        threads: of the engine.
        slots: of each thread.
        encoder_cache_mb: megabytes of encoder memories that are kept; 0: none.
        seed: of all that is random.
    """

    segments: int
    threads: int
    slots: int
    encoder_cache_mb: int
    seed: int


def main(argv: list[str]) -> int:
    """Run the soak and print what it found.

    Returns:
        0.

    Raises:
        SystemExit: With 2, after one line on stderr, when an argument or the bundle is no good.
    """
    parser = make_parser("python -m bench.memory_soak", __doc__)
    add_bundle(parser)
    add = parser.add_argument
    add("--segments", type=whole, default=100_000, metavar="N", help="how many (%(default)s)")
    add("--threads", type=count, default=cores.available(), metavar="N", help="of the engine (%(default)s)")
    add("--slots", type=count, default=32, metavar="N", help="of each thread (%(default)s)")
    add("--encoder-cache-mb", type=whole, default=64, metavar="MB", help="kept memories (%(default)s); 0: none")
    add("--seed", type=whole, default=0, metavar="N", help="of all that is random (%(default)s)")
    add_json(parser)
    arguments = parser.parse_args(argv)
    settings = {name: value for name, value in vars(arguments).items() if name not in ("bundle", "json")}
    if arguments.segments < SAMPLES:
        parser.error(f"needs --segments {SAMPLES} or more")
    try:
        bundle = Bundle.open(arguments.bundle)
        report = {"bundle": bundle.manifest.name, **settings, **run(bundle, Soak(**settings))}
    except BundleError as error:
        parser.error(str(error))
    print(to_text(report))
    write_json(arguments.json, report)
    return EXIT_OK


def run(bundle: Bundle, soak: Soak) -> dict[str, Any]:
    """Decode all segments.

    Returns:
        The figures, as `summarize` gives them, and the samples, ready for JSON.

    Raises:
        BundleError: a graph cannot be loaded.
    """
    share_one_heap()  # as the server does
    date = now()
    mailbox, metrics = Mailbox(sys.maxsize), Metrics()
    engine = Engine(
        bundle,
        mailbox,
        metrics,
        device="cpu",
        threads=soak.threads,
        slots=soak.slots,
        encoder_cache_bytes=soak.encoder_cache_mb * MEGABYTE,
    )
    start = time.perf_counter()
    engine.start()
    try:
        _fill(mailbox, bundle.manifest, soak)
        samples = _feed(mailbox, metrics, bundle.manifest, soak)
        mailbox.wait_idle()
    finally:
        engine.stop()
    engine.ended.result()  # raises what ended a thread, if anything did
    return {
        "date": date,
        "duration_s": time.perf_counter() - start,
        "target_tokens": metrics.total("target_tokens_total"),
        **summarize(samples),
        "samples": [Sample(*row)._asdict() for row in samples.tolist()],
    }


def _fill(mailbox: Mailbox, manifest: Manifest, soak: Soak) -> None:
    """Decode the longest segments there are, in all slots."""
    random = np.random.default_rng(soak.seed)
    count = soak.threads * soak.slots * (1 + _WAITING_PER_SLOT)
    sources, limits = [manifest.max_source_tokens] * count, [manifest.max_target_tokens] * count
    mailbox.submit(random_sentences(manifest, sources, limits, random).decodes())
    mailbox.wait_idle()


def _feed(mailbox: Mailbox, metrics: Metrics, manifest: Manifest, soak: Soak) -> NDArray[np.float64]:
    """Submit segments as fast as they are decoded; gives the samples taken on the way, as `Sample`s in rows."""
    random = np.random.default_rng(soak.seed)
    most_unfinished = soak.threads * soak.slots * (1 + _WAITING_PER_SLOT)
    portion = max(soak.segments // SAMPLES, 1)
    # An array, since what samples take would count.
    samples = np.zeros((-(-soak.segments // portion), len(Sample._fields)))
    with tqdm(total=soak.segments, unit=" segments", disable=not sys.stderr.isatty()) as bar:
        for place, start in enumerate(range(0, soak.segments, portion)):
            count = min(portion, soak.segments - start)
            sources = random_lengths(random, count, manifest.max_source_tokens).tolist()
            limits = random_lengths(random, count, manifest.max_target_tokens).tolist()
            for decode in random_sentences(manifest, sources, limits, random).decodes():
                while mailbox.unfinished >= most_unfinished:
                    time.sleep(_PAUSE_S)
                mailbox.submit([decode])
                if random.random() < CANCELLED_SHARE:
                    mailbox.cancel([decode])
            bar.update(count)
            samples[place] = _sample(start + count, metrics)
    return samples


def _sample(segments: int, metrics: Metrics) -> Sample:
    cache_bytes = metrics.total("encoder_memory_cache_bytes")
    return Sample(segments, resident_mib(os.getpid()), allocated_mib(), cache_bytes / 2**20, sys.getallocatedblocks())


def summarize(samples: NDArray[np.float64]) -> dict[str, dict[str, float | None]]:
    """Compute how memory changed after the first tenth.

    Args:
        samples: `Sample`s in rows, in order; the last one is the end.

    Returns:
        For each field of a sample but the first: its values, and how fast it grew.
    """
    work, *columns = samples.T.tolist()
    return {name: _trend(work, sizes) for name, sizes in zip(Sample._fields[1:], columns, strict=True)}


def _trend(work: list[float], sizes: list[float]) -> dict[str, float | None]:
    later = sizes[settled(work) :]
    return {
        "after_first_tenth": later[0],
        "largest_after_it": max(later),
        "at_end": later[-1],
        "per_10000_segments": growth(work, sizes, per=10_000),
    }


def to_text(report: dict[str, Any]) -> str:
    """Write the figures for people."""
    lines = [
        f"{report['segments']} segments, {report['target_tokens']:.0f} target tokens, {report['duration_s']:.1f} s",
        f"{'':14}{'after 1st tenth':>16}{'largest after it':>18}{'at the end':>12}{'per 10,000 segments':>21}",
    ]
    for name in Sample._fields[1:]:
        first, largest, end, slope = report[name].values()
        lines.append(f"{name:14}{first:16.1f}{largest:18.1f}{end:12.1f}{slope:+21.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
