"""Does memory go with a model that is replaced? A server reloads under load, its memory sampled; Linux with glibc only.

    dragoman bench reload-soak [--bundle models/en-de/bundle] [--reloads 20] [--json OUT] [-- arguments of serve]

Between two reloads the new model translates sentences that were never asked for before, so that its slots and caches
hold something when it goes. The first reloads may cost memory, since two models are there at a time; after that,
nothing may grow.
"""

import argparse
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench import metrics_page
from bench.arguments import add_bundle, add_serve, whole
from bench.frame import Figures
from bench.memory import resident_mib
from bench.server_process import Running, ServerError, running, serve_command
from dragoman.bundle import MANIFEST, Manifest
from dragoman.client import Client

SENTENCES: Final = 256  # between two reloads
_TIMEOUT_S: Final = 60.0
_PAUSE_S: Final = 0.02


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_bundle(parser)
    parser.add_argument("--reloads", type=whole, default=20, metavar="N", help="how many (%(default)s)")
    add_serve(parser)


def measure(arguments: argparse.Namespace) -> Figures:
    return {"rows": reloaded(arguments.bundle, arguments.reloads, arguments.serve)}


def reloaded(bundle: Path, reloads: int, arguments: Sequence[str] = ()) -> list[Figures]:
    """Serve a copy of a bundle with `arguments` of `dragoman serve`, and replace it again and again.

    Returns:
        A row before the first reload, and one after each.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(bundle, Path(folder) / "bundle")
        with running(serve_command("--models", copy, *arguments)) as server:
            rows = []
            for number in range(reloads + 1):
                if number:
                    replace(server, copy, number)
                _translate(server, number)
                rows.append({"reloads": number, "resident_mib": resident_mib(server.process.pid)})
    return rows


def _translate(server: Running, number: int) -> None:
    texts = [f"Tom bought {number * SENTENCES + place} books, and then he read them all." for place in range(SENTENCES)]
    with Client(server.address, timeout_s=_TIMEOUT_S) as client:
        client.translate(texts, source_language="en", target_language="de")


def replace(server: Running, bundle: Path, number: int) -> None:
    """Change the bundle of a server, have the server reload it, and wait until the old model is gone."""
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
