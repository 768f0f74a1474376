"""Does memory stay flat? Random segments through the engine in this process, its resident size sampled. Linux only.

    python -m bench.memory_soak [--bundle models/en-de/bundle] [--segments 100000] [--json OUT]

Sources are of random ids and of lengths from one token to the model's limit, limits of targets are random too, and
one segment in a hundred is cancelled: every shape that a run can have comes up. All sources differ, so a cache of
encoder memories fills to its bound and forgets. After the first tenth nothing may grow.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from dragoman.bundle import Bundle, Manifest
from dragoman.errors import BundleError
from service.engine import Engine
from service.mailbox import Mailbox
from service.metrics import Metrics
from service.request import Segment
from service.settings import MEGABYTE

EXIT_OK, EXIT_BAD_ARGUMENTS = 0, 2
SAMPLES: Final = 200
CANCELLED_SHARE: Final = 0.01
# Lengths as sentences have them: half below ten tokens, one in a thousand above a hundred.
_MEDIAN_TOKENS, _SPREAD = 9.0, 0.75
# Segments that wait beside those in slots: enough that no slot stays empty.
_WAITING_PER_SLOT = 2
_PAUSE_S = 0.001


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
    """Runs the soak and prints what it found.

    Returns:
        0; 2, after one line on stderr, when an argument or the bundle is no good.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.memory_soak", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--bundle", type=Path, default=Path("models/en-de/bundle"), metavar="DIR", help="(%(default)s)")
    add("--segments", type=int, default=100_000, metavar="N", help="how many (%(default)s)")
    add("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N", help="of the engine (%(default)s)")
    add("--slots", type=int, default=32, metavar="N", help="of each thread (%(default)s)")
    add("--encoder-cache-mb", type=int, default=64, metavar="MB", help="kept memories (%(default)s); 0: none")
    add("--seed", type=int, default=0, metavar="N", help="of all that is random (%(default)s)")
    add("--json", type=Path, metavar="OUT", help="also write the figures, with all samples, to this file")
    arguments = parser.parse_args(argv)
    settings = {name: value for name, value in vars(arguments).items() if name not in ("bundle", "json")}
    if arguments.segments < SAMPLES or min(arguments.threads, arguments.slots) < 1 or arguments.encoder_cache_mb < 0:
        print(f"{parser.prog}: needs --segments {SAMPLES} or more, --threads and --slots 1 or more", file=sys.stderr)
        return EXIT_BAD_ARGUMENTS
    try:
        bundle = Bundle.open(arguments.bundle)
        report = {"bundle": bundle.manifest.name, **settings, **run(bundle, Soak(**settings))}
    except BundleError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return EXIT_BAD_ARGUMENTS
    print(to_text(report))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    return EXIT_OK


def run(bundle: Bundle, soak: Soak) -> dict[str, Any]:
    """Decodes all segments.

    Returns:
        The figures, their units in their names, and the samples, ready for JSON.

    Raises:
        BundleError: a graph cannot be loaded.
    """
    date = datetime.now(UTC).isoformat(timespec="seconds")
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
        samples = _feed(mailbox, bundle.manifest, soak)
        mailbox.wait_idle()
    finally:
        engine.stop()
    engine.ended.result()  # raises what ended a thread, if anything did
    tokens = metrics.registry.get_sample_value("dragoman_target_tokens_total")
    return {
        "date": date,
        "duration_s": time.perf_counter() - start,
        "target_tokens": tokens,
        **summarize(samples),
        "samples": [{"segments": count, "rss_mib": rss_mib} for count, rss_mib in samples],
    }


def _feed(mailbox: Mailbox, manifest: Manifest, soak: Soak) -> list[tuple[int, float]]:
    """Submits segments as fast as they are decoded; samples [segments, MiB] on the way."""
    random = np.random.default_rng(soak.seed)
    most_unfinished = soak.threads * soak.slots * (1 + _WAITING_PER_SLOT)
    portion = max(soak.segments // SAMPLES, 1)
    samples = []
    with tqdm(total=soak.segments, unit=" segments", disable=not sys.stderr.isatty()) as bar:
        for count in range(0, soak.segments, portion):
            for segment in _segments(manifest, random, min(portion, soak.segments - count)):
                while mailbox.unfinished >= most_unfinished:
                    time.sleep(_PAUSE_S)
                mailbox.submit([segment])
                if random.random() < CANCELLED_SHARE:
                    mailbox.cancel([segment])
            bar.update(min(portion, soak.segments - count))
            samples.append((min(count + portion, soak.segments), rss_mib()))
    return samples


def _segments(manifest: Manifest, random: np.random.Generator, count: int) -> Iterator[Segment]:
    """Random ids, of the lengths of sentences; the limit of each target likewise."""
    sources = _lengths(random, count, manifest.max_source_tokens)
    limits = _lengths(random, count, manifest.max_target_tokens)
    for source, limit in zip(sources.tolist(), limits.tolist(), strict=True):
        ids = random.integers(0, manifest.vocabulary_size, source - 1).tolist()
        yield Segment([*ids, manifest.eos_id], limit)


def _lengths(random: np.random.Generator, count: int, limit: int) -> NDArray[np.int64]:
    drawn = random.lognormal(np.log(_MEDIAN_TOKENS), _SPREAD, count)
    return np.clip(np.rint(drawn), 1, limit).astype(np.int64)


def rss_mib() -> float:
    """Mebibytes of this process that are resident now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def summarize(samples: list[tuple[int, float]]) -> dict[str, Any]:
    """How memory went on after the first tenth.

    Args:
        samples: segments submitted and resident MiB, in order; the last one is the end.
    """
    total = samples[-1][0]
    later = [sample for sample in samples if sample[0] >= total / 10]
    counts, sizes = (np.array(values, float) for values in zip(*later, strict=True))
    slope = np.polyfit(counts, sizes, 1)[0] if len(later) > 1 else 0.0
    return {
        "rss_after_first_tenth_mib": sizes[0],
        "rss_max_after_it_mib": float(sizes.max()),
        "rss_at_end_mib": sizes[-1],
        "slope_mib_per_10000_segments": float(slope * 10_000),
    }


def to_text(report: dict[str, Any]) -> str:
    """The figures for people."""
    return "\n".join(
        [
            f"segments:                 {report['segments']}, {report['target_tokens']:.0f} target tokens",
            f"duration:                 {report['duration_s']:.1f} s",
            f"RSS after first tenth:    {report['rss_after_first_tenth_mib']:.1f} MiB",
            f"largest after it:         {report['rss_max_after_it_mib']:.1f} MiB",
            f"at the end:               {report['rss_at_end_mib']:.1f} MiB",
            f"slope after it:           {report['slope_mib_per_10000_segments']:+.2f} MiB per 10,000 segments",
        ]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
