"""Many models in little memory: more bundles than have room, asked for by Zipf's law; Linux with glibc only.

    dragoman bench many-models [--bundle models/en-de/bundle] [--models 12] [--room 4] [--clients 8] [--duration 60]
                                [--json OUT]

Each model is a copy of the bundle under a name of its own, with weights that are no file of another, so that they share
no memory. The budget is what `--room` of them cost by the server's estimate, with one thread, few slots and small
caches. Each client calls again and again, with sentences that were never asked for before, and never tries twice.
"""

import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench import metrics_page
from bench.arguments import add_bundle, count, positive
from bench.copies import copied
from bench.frame import Figures
from bench.load.drive import put
from bench.load.loops import ClosedLoop
from bench.memory import peak_resident_mib, resident_mib
from bench.metrics_page import Page
from bench.server_process import running, serve_command
from dragoman.bundle import Bundle
from dragoman.v1 import translation_pb2 as pb
from service.registry.model_cost import estimate
from service.settings import MEGABYTE, Settings

_TIMEOUT_S: Final = 120.0
_REQUESTS: Final = 100_000  # more than a server of one thread translates in minutes
_SETTINGS: Final = {"threads": 1, "slots": 8, "encoder_cache_mb": 4, "result_cache_mb": 1}
_WAIT: Final = "model_wait_duration_seconds"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_bundle(parser)
    add = parser.add_argument
    add("--models", type=count, default=12, metavar="N", help="on disk (%(default)s)")
    add("--room", type=count, default=4, metavar="N", help="of these in memory (%(default)s)")
    add("--clients", type=count, default=8, metavar="N", help="that call at the same time (%(default)s)")
    add("--duration", type=positive, default=60.0, metavar="S", help="seconds of load (%(default)g)")


def measure(arguments: argparse.Namespace) -> Figures:
    cost = estimate(Bundle.open(arguments.bundle), Settings.model_validate(_SETTINGS)).total_bytes
    budget_mb = -(-arguments.room * cost // MEGABYTE)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in _SETTINGS.items()]
    with tempfile.TemporaryDirectory() as folder:
        names = [f"model-{number:02}" for number in range(arguments.models)]
        for name in names:
            copied(arguments.bundle, Path(folder, name), name=name)
        with running(serve_command("--models", folder, *flags, f"--model-memory-mb={budget_mb}")) as server:
            empty_mib = resident_mib(server.process.pid)
            loop = ClosedLoop(arguments.clients, 0.0, arguments.duration, None)
            samples = put([server.address], _requests(names), loop, timeout_s=_TIMEOUT_S)
            page = metrics_page.read(server.metrics_address, _TIMEOUT_S)
            peak_mib = peak_resident_mib(server.process.pid)
    budget_mib = budget_mb * MEGABYTE / 2**20
    return {
        "calls": samples.completed + samples.unanswered,
        "failed_calls": samples.unanswered,
        "loads": page.total("model_loads_total", outcome="loaded"),
        "failed_loads": page.total("model_loads_total", outcome="failed"),
        "evictions": page.total("model_evictions_total"),
        "calls_that_waited": page.total(f"{_WAIT}_count"),
        "wait_p50_s": at_most(page, 0.5),
        "wait_p95_s": at_most(page, 0.95),
        "budget_mib": budget_mib,
        "empty_server_mib": empty_mib,
        "peak_mib": peak_mib,
        "peak_less_empty_to_budget": (peak_mib - empty_mib) / budget_mib,
        "checks": {"no call failed": not samples.unanswered},
    }


def at_most(page: Page, share: float) -> float:
    """Give the bound of the bucket below which this share of the waits lies; 0 where there was none."""
    buckets = sorted(
        (float(dict(labels)["le"]), value) for (name, labels), value in page.items() if name.endswith(f"{_WAIT}_bucket")
    )
    waits = buckets[-1][1]
    return next(bound for bound, below in buckets if below >= share * waits) if waits else 0.0


def _requests(names: Sequence[str]) -> list[bytes]:
    """Draw requests of one sentence for models by Zipf's law, no two of them equal."""
    chance, weights = random.Random(0), [1 / rank for rank in range(1, len(names) + 1)]
    return [
        pb.TranslateTextRequest(
            model=name, contents=[f"Tom bought {number} books, and read them all."]
        ).SerializeToString()
        for number, name in enumerate(chance.choices(names, weights, k=_REQUESTS))
    ]
