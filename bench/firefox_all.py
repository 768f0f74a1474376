"""Every direction of Firefox's models on one server, as `dragoman serve firefox:all` starts it; Linux with glibc only.

    python -m bench.firefox_all [--bundle models/en-de/bundle] [--languages 10] [--room 5] [--json OUT]

The models are copies of a bundle, one into English and one out of it for each language, in a cache folder of their own
with the list that Firefox has of them: nothing is fetched. The budget is what `--room` of them cost by the server's
estimate, with one thread, few slots and small caches. Each model is called for the first time by itself; then texts go
from each language into the next one, over English.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench import metrics_page
from bench.arguments import add_bundle, add_json, count, make_parser
from bench.copies import copied
from bench.files import write_json
from bench.machine import now
from bench.memory.process import peak_resident_mib, resident_mib
from bench.server_process import Running, ServerError, running, serve_command
from dragoman.bundle import Bundle
from dragoman.client import Client
from dragoman.errors import BundleError, DragomanError
from dragoman.exit_codes import EXIT_FAILED, EXIT_OK
from dragoman.language_marks import Languages
from service.library.names import ALL_OF_FIREFOX, Name
from service.library.store import BUNDLE, Origin, Store
from service.registry.model_cost import estimate
from service.settings import MEGABYTE, Settings

_TIMEOUT_S: Final = 120.0
_SETTINGS: Final = {"threads": 1, "slots": 8, "encoder_cache_mb": 4, "result_cache_mb": 1}
_KEEP_ALIVE_S: Final = 5
_LANGUAGES: Final = (
    "bg",
    "ca",
    "cs",
    "da",
    "de",
    "el",
    "es",
    "et",
    "fi",
    "fr",
    "hr",
    "it",
    "nl",
    "pl",
    "pt",
    "ro",
    "uk",
)
_TEXT: Final = "Tom bought three books."


def main(argv: list[str]) -> int:
    """Measure, and print the figures; 1 when a call failed or the server did."""
    parser = make_parser("python -m bench.firefox_all", __doc__)
    add_bundle(parser)
    add = parser.add_argument
    add("--languages", type=count, default=10, metavar="N", help="beside English (%(default)s)")
    add("--room", type=count, default=5, metavar="N", help="of the models in memory (%(default)s)")
    add_json(parser)
    arguments = parser.parse_args(argv)
    if not 2 <= arguments.languages <= len(_LANGUAGES):
        parser.error(f"--languages: must be from 2 to {len(_LANGUAGES)}, not {arguments.languages}")
    try:
        report = measure(arguments.bundle, _LANGUAGES[: arguments.languages], arguments.room)
    except BundleError as error:
        parser.error(str(error))
    except (DragomanError, ServerError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return EXIT_FAILED
    for name, value in report.items():
        print(f"{name:26} {value:.4g}" if isinstance(value, float) else f"{name:26} {value}")
    write_json(arguments.json, report)
    return EXIT_OK


def measure(bundle: Path, languages: Sequence[str], room: int) -> dict[str, Any]:
    """Serve copies of a bundle in the memory of some of them.

    Args:
        bundle: of any model.
        languages: beside English, at least two.
        room: how many copies have room by the estimate.

    Returns:
        The figures: memory in MiB, times in seconds.

    Raises:
        BundleError: there is no such bundle.
        DragomanError: a call failed.
        ServerError: the server ended or was not ready in time.
    """
    cost = estimate(Bundle.open(bundle), Settings.model_validate(_SETTINGS)).total_bytes
    budget_mb = -(-room * cost // MEGABYTE)
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in _SETTINGS.items()]
    flags += [f"--model-memory-mb={budget_mb}", f"--keep-alive-s={_KEEP_ALIVE_S}"]
    pairs = [pair for code in languages for pair in (f"{code}-en", f"en-{code}")]
    with tempfile.TemporaryDirectory() as home, _cache_folder(home):
        _fill(Store(), bundle, pairs)
        with running(serve_command(str(ALL_OF_FIREFOX), *flags)) as server:
            date, pid = now(), server.process.pid
            listed_mib = resident_mib(pid)
            with Client(server.address, timeout_s=_TIMEOUT_S, retries=0) as client:
                first_s = [_time_s(client, model=f"firefox-{pair}") for pair in pairs]
                again_s = _time_s(client, model=f"firefox-{pairs[-1]}")
                ring = pairwise([*languages, languages[0]])
                pivot_s = [_time_s(client, source=here, target=there) for here, there in ring]
            called_mib, page = resident_mib(pid), metrics_page.read(server.metrics_address, _TIMEOUT_S)
            _await_idle(server)
            idle_mib, peak_mib = resident_mib(pid), peak_resident_mib(pid)
    return {
        "date": date,
        "models": len(pairs),
        "time_to_serving_s": server.time_to_serving_s,
        "first_call_p50_s": median(first_s),
        "first_call_max_s": max(first_s),
        "second_call_s": again_s,
        "two_models_call_p50_s": median(pivot_s),
        "loads": page.total("model_loads_total", outcome="loaded"),
        "evictions": page.total("model_evictions_total"),
        "budget_mib": budget_mb * MEGABYTE / 2**20,
        "listed_mib": listed_mib,
        "all_called_mib": called_mib,
        "idle_mib": idle_mib,
        "peak_mib": peak_mib,
    }


@contextmanager
def _cache_folder(home: str) -> Iterator[None]:
    """Have this process and those that it starts find their cache folder there."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = home
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before


def _fill(store: Store, bundle: Path, pairs: Sequence[str]) -> None:
    """Put a copy for each pair there, and the list that names them."""
    for pair in pairs:
        name, (source, target) = Name("firefox", pair), pair.split("-")
        with store.adding(name) as folder:
            copied(bundle, folder / BUNDLE, name=f"firefox-{pair}", languages=Languages.pair(source, target))
            store.put(name, "int8", folder, Origin(name=str(name), revision=pair))
    models = {pair: [{"files": {"model": {"path": pair}}}] for pair in pairs}
    store.firefox_list.write_text(json.dumps({"baseUrl": "http://127.0.0.1:9", "models": models}))


def _time_s(client: Client, *, model: str = "", source: str = "", target: str = "") -> float:
    start_s = time.perf_counter()
    client.translate(_TEXT, model=model, source_language=source, target_language=target)
    return time.perf_counter() - start_s


def _await_idle(server: Running) -> None:
    """Wait until no model is in memory."""
    until_s = time.monotonic() + _TIMEOUT_S
    while metrics_page.read(server.metrics_address, _TIMEOUT_S).total("model_memory_bytes"):
        if time.monotonic() > until_s:
            raise ServerError(f"models are in memory {_TIMEOUT_S:g} s after the last call")
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
