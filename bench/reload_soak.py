"""Does memory go with a model that is replaced? A server reloads under load, its memory sampled; Linux with glibc only.

    python -m bench.reload_soak [--bundle models/en-de/bundle] [--reloads 20] [--json OUT] [-- arguments of serve]

Between two reloads the new model translates sentences that were never asked for before, so that its slots and caches
hold something when it goes. The first reloads may cost memory, since two models are there at a time; after that,
nothing may grow.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tqdm import tqdm

from bench import metrics_page
from bench.arguments import add_bundle, add_json, add_serve, make_parser, whole
from bench.files import write_json
from bench.memory.process import resident_mib
from bench.server_process import Running, ServerError, running, serve_command
from dragoman.bundle import MANIFEST, Manifest
from dragoman.client import Client

SENTENCES: Final = 256  # between two reloads
_TIMEOUT_S: Final = 60.0
_PAUSE_S: Final = 0.02


def main(argv: list[str]) -> int:
    """Measure, and print resident memory after each reload; 1 when the server failed."""
    parser = make_parser("python -m bench.reload_soak", __doc__)
    add_bundle(parser)
    parser.add_argument("--reloads", type=whole, default=20, metavar="N", help="how many (%(default)s)")
    add_json(parser)
    add_serve(parser)
    arguments = parser.parse_args(argv)
    try:
        sizes_mib = measure(arguments.bundle, arguments.reloads, arguments.serve)
    except ServerError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    for reloads, mib in enumerate(sizes_mib):
        print(f"{reloads:4} reloads  {mib:8.1f} MiB resident")
    write_json(arguments.json, {"resident_mib": sizes_mib})
    return 0


def measure(bundle: Path, reloads: int, arguments: Sequence[str] = ()) -> list[float]:
    """Serve a copy of a bundle and replace it again and again.

    Args:
        bundle: whose manifest is changed, so that each version is a new one.
        reloads: how often.
        arguments: of `dragoman serve`.

    Returns:
        Resident memory of the server in MiB, before the first reload and after each.

    Raises:
        ServerError: the server ended or was not ready in time, or a reload did not end in time.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "bundle"
        shutil.copytree(bundle, copy)
        with running(serve_command("--models", copy, *arguments)) as server:
            _translate(server, 0)
            sizes_mib = [resident_mib(server.process.pid)]
            for number in tqdm(range(1, reloads + 1), unit="reload", disable=None):
                replace(server, copy, number)
                _translate(server, number)
                sizes_mib.append(resident_mib(server.process.pid))
    return sizes_mib


def _translate(server: Running, number: int) -> None:
    texts = [f"Tom bought {number * SENTENCES + place} books, and then he read them all." for place in range(SENTENCES)]
    with Client(server.address, timeout_s=_TIMEOUT_S) as client:
        client.translate(texts, source_language="en", target_language="de")


def replace(server: Running, bundle: Path, number: int) -> None:
    """Change a bundle, have the server reload it, and wait until the old model is gone.

    Args:
        server: that serves the bundle.
        bundle: its folder, which may be written to.
        number: of the reload, from 1.

    Raises:
        ServerError: the server ended, or the reload did not end in time.
    """
    manifest = Manifest.read(bundle).model_copy(update={"parameters": number})
    (bundle / MANIFEST).write_text(manifest.model_dump_json())
    os.kill(server.process.pid, signal.SIGHUP)
    deadline_s = time.monotonic() + _TIMEOUT_S
    while not _is_replaced(server, number):
        if time.monotonic() > deadline_s or server.process.poll() is not None:
            raise ServerError(f"reload {number} did not end within {_TIMEOUT_S:g} s")
        time.sleep(_PAUSE_S)


def _is_replaced(server: Running, number: int) -> bool:
    page = metrics_page.read(server.metrics_address, _TIMEOUT_S)
    return page.total("model_reloads_total") >= number and not page.total("retiring_models")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
