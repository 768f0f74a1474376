"""Many models in little memory: more bundles than have room, asked for by Zipf's law; Linux with glibc only.

    python -m bench.many_models [--bundle models/en-de/bundle] [--models 12] [--room 4] [--clients 8] [--duration 60]
                                [--json OUT]

Each model is a copy of the bundle under a name of its own, with weights that are no file of another, so that they share
no memory. The budget is what `--room` of them cost by the server's estimate, with one thread, few slots and small
caches. Each client calls again and again, with sentences that were never asked for before, and never tries twice.
"""

import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

from bench import metrics_page
from bench.arguments import add_bundle, add_json, count, make_parser, positive
from bench.copies import copied
from bench.files import write_json
from bench.machine import now
from bench.memory.process import peak_resident_mib, resident_mib
from bench.metrics_page import Page
from bench.server_process import ServerError, running, serve_command
from dragoman.bundle import Bundle
from dragoman.client import Client
from dragoman.errors import BundleError, DragomanError
from dragoman.exit_codes import EXIT_FAILED, EXIT_OK
from service.registry.model_cost import estimate
from service.settings import MEGABYTE, Settings

_TIMEOUT_S: Final = 120.0
_SETTINGS: Final = {"threads": 1, "slots": 8, "encoder_cache_mb": 4, "result_cache_mb": 1}
_WAIT: Final = "model_wait_duration_seconds"
_MIB: Final = 2**20


def main(argv: list[str]) -> int:
    """Measure, and print the figures; 1 when a call failed or the server did."""
    parser = make_parser("python -m bench.many_models", __doc__)
    add_bundle(parser)
    add = parser.add_argument
    add("--models", type=count, default=12, metavar="N", help="on disk (%(default)s)")
    add("--room", type=count, default=4, metavar="N", help="of these in memory (%(default)s)")
    add("--clients", type=count, default=8, metavar="N", help="that call at the same time (%(default)s)")
    add("--duration", type=positive, default=60.0, metavar="S", help="seconds of load (%(default)g)")
    add_json(parser)
    arguments = parser.parse_args(argv)
    try:
        report = measure(
            arguments.bundle, arguments.models, arguments.room, arguments.clients, duration_s=arguments.duration
        )
    except BundleError as error:
        parser.error(str(error))
    except ServerError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return EXIT_FAILED
    for name, value in report.items():
        print(f"{name:26} {value:.4g}" if isinstance(value, float) else f"{name:26} {value}")
    write_json(arguments.json, report)
    return EXIT_FAILED if report["failed_calls"] else EXIT_OK


def measure(bundle: Path, models: int, room: int, clients: int, *, duration_s: float) -> dict[str, Any]:
    """Serve copies of a bundle in the memory of some of them, under load.

    Args:
        bundle: from English into German.
        models: how many copies.
        room: how many have room by the estimate.
        clients: that call at the same time.
        duration_s: for how long.

    Returns:
        The figures: memory in MiB, times in seconds.

    Raises:
        BundleError: there is no such bundle.
        ServerError: the server ended or was not ready in time.
    """
    cost = estimate(Bundle.open(bundle), Settings.model_validate(_SETTINGS)).total_bytes
    budget_mb = -(-room * cost // MEGABYTE)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in _SETTINGS.items()]
    with tempfile.TemporaryDirectory() as folder:
        names = [f"model-{number:02}" for number in range(models)]
        for name in names:
            copied(bundle, Path(folder, name), name=name)
        with running(serve_command("--models", folder, *flags, f"--model-memory-mb={budget_mb}")) as server:
            empty_mib = resident_mib(server.process.pid)
            date, load = now(), _Load(server.address, names, duration_s)
            load.run(clients)
            page = metrics_page.read(server.metrics_address, _TIMEOUT_S)
            peak_mib = peak_resident_mib(server.process.pid)
    return {
        "date": date,
        "calls": load.calls,
        "failed_calls": len(load.failures),
        "loads": page.total("model_loads_total", outcome="loaded"),
        "failed_loads": page.total("model_loads_total", outcome="failed"),
        "evictions": page.total("model_evictions_total"),
        "calls_that_waited": page.total(f"{_WAIT}_count"),
        "wait_p50_s": at_most(page, 0.5),
        "wait_p95_s": at_most(page, 0.95),
        "budget_mib": budget_mb * MEGABYTE / _MIB,
        "empty_server_mib": empty_mib,
        "peak_mib": peak_mib,
        "peak_less_empty_to_budget": (peak_mib - empty_mib) * _MIB / (budget_mb * MEGABYTE),
    }


def at_most(page: Page, share: float) -> float:
    """Give the bound of the bucket below which this share of the waits lies; 0 where there was none."""
    buckets = sorted(
        (float(dict(labels)["le"]), value) for (name, labels), value in page.items() if name.endswith(f"{_WAIT}_bucket")
    )
    waits = buckets[-1][1]
    return next(bound for bound, below in buckets if below >= share * waits) if waits else 0.0


class _Load:
    """Clients that call until the time is over.

    Attributes:
        calls: that ended.
        failures: of these.
    """

    def __init__(self, address: str, names: list[str], duration_s: float) -> None:
        self._address = address
        self._names = names
        self._weights = [1 / rank for rank in range(1, len(names) + 1)]
        self._duration_s = duration_s
        self._lock = threading.Lock()
        self.calls = 0
        self.failures: list[DragomanError] = []

    def run(self, clients: int) -> None:
        """Have so many clients call, and wait for their ends."""
        threads = [threading.Thread(target=self._call, args=(seed,)) for seed in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _call(self, seed: int) -> None:
        chance, until_s = random.Random(seed), time.monotonic() + self._duration_s
        with Client(self._address, timeout_s=_TIMEOUT_S, retries=0) as client:
            while time.monotonic() < until_s:
                [name] = chance.choices(self._names, self._weights)
                text = f"Tom bought {chance.randrange(1_000_000)} books, and then he read them all."
                failure = None
                try:
                    client.translate(text, model=name)
                except DragomanError as error:
                    failure = error
                with self._lock:
                    self.calls += 1
                    self.failures += [failure] if failure else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
