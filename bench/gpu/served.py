"""A real server on the device: under load, and under load while its model is replaced again and again."""

import asyncio
import os
import shutil
import signal
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from bench import metrics_page
from bench.exported import bundle_folder
from bench.frame import Figures
from bench.gpu.memory import used_mib
from bench.gpu.task import Task
from bench.load.prepare import LoadSettings
from bench.load.run import run_load
from bench.server_process import NOTHING_FREE, Running, ServerError, running, serve_command
from dragoman.bundle import Manifest
from model.corpus import read_corpus

VERIFIED_TEXTS: Final = 200
_RELOAD_TIMEOUT_S: Final = 60.0
_PAUSE_S: Final = 0.02
# Of the report of a load, those that say something of a server on a GPU.
_FIGURES: Final = (
    *("max_concurrency", "completed", "failed", "rejected", "errors", "sentence_throughput", "output_throughput"),
    *("p50_e2el_ms", "p95_e2el_ms", "p99_e2el_ms", "verify_compared", "verify_different", "verify_examples"),
)


def load_test(task: Task) -> Figures:
    """Run a closed loop of twice the server's slots; every answer is compared with the one given alone."""
    with running(_serve(task, bundle_folder(task.folder, "fp16"))) as server:
        return _load(task, server)


def reload(task: Task) -> Figures:
    """Run that load while the server reloads its model as fast as it can: no call may fail, no answer may change."""
    with tempfile.TemporaryDirectory() as folder:
        bundle, ended = shutil.copytree(bundle_folder(task.folder, "fp16"), Path(folder) / "bundle"), threading.Event()
        with running(_serve(task, bundle)) as server, ThreadPoolExecutor(1) as pool:
            before_mib = used_mib(task.setup.device)
            replacing = pool.submit(_replace_until, ended, server, bundle)
            try:
                figures = _load(task, server)
                task.note(figures)  # the last reload takes its time
            finally:
                ended.set()
            reloads = replacing.result()
            memory = {"mib_before": before_mib, "mib_after": used_mib(task.setup.device)}
    checks = {**figures["checks"], "the model was replaced under load": reloads > 0}
    return {**figures, "reloads": reloads, **memory, "checks": checks}


def _serve(task: Task, bundle: Path) -> list[str]:
    flags = ("--device", task.setup.device, "--threads", "1", "--slots", str(task.setup.served_slots))
    return serve_command("--models", bundle, *flags, *NOTHING_FREE)


def _load(task: Task, server: Running) -> Figures:
    settings = LoadSettings(
        server.address,
        concurrency=2 * task.setup.served_slots,
        duration_s=task.setup.load_s,
        warmup_s=task.setup.load_s / 5,
        verify_texts=VERIFIED_TEXTS,
    )
    texts = read_corpus(task.setup.data).sources[: task.setup.sentences]
    report = asyncio.run(run_load(settings, texts))
    return {
        "time_to_serving_s": server.time_to_serving_s,
        **{name: report[name] for name in _FIGURES if name in report},
        "checks": {
            "every call was answered": not report["errors"] and report["completed"] > 0,
            "every answer is the one given alone": report["verify_different"] == 0,
        },
    }


def _replace_until(ended: threading.Event, server: Running, bundle: Path) -> int:
    """Replace the model, one reload after the other; gives how often."""
    reloads = 0
    while not ended.is_set():
        reloads += 1
        replace(server, bundle, reloads)
    return reloads


def replace(server: Running, bundle: Path, number: int) -> None:
    """Change the bundle of a server, have it reloaded, and wait until the old model is gone, a minute at most."""
    Manifest.read(bundle).model_copy(update={"parameters": number}).write(bundle)
    os.kill(server.process.pid, signal.SIGHUP)
    deadline_s = time.monotonic() + _RELOAD_TIMEOUT_S
    while not _is_replaced(server, number):
        if time.monotonic() > deadline_s or server.process.poll() is not None:
            raise ServerError(f"reload {number} did not end within {_RELOAD_TIMEOUT_S:g} s")
        time.sleep(_PAUSE_S)


def _is_replaced(server: Running, number: int) -> bool:
    page = metrics_page.read(server.metrics_address, _RELOAD_TIMEOUT_S)
    return page.total("model_reloads_total") >= number and not page.total("retiring_models")
