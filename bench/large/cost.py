"""What a model costs before it is fast: the memory of its export, its bundle, a server's memory, the first answer."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.memory import peak_resident_mib, resident_mib
from bench.server_process import running, serve_command
from dragoman import Client
from dragoman.errors import BundleError

_LANGUAGES: Final = ("--source-language=en", "--target-language=de")
_MIB: Final = 2**20
_MB: Final = 10**6
_KIB: Final = 2**10  # in which Linux counts the memory of a process that has ended


@dataclass(frozen=True)
class Cost:
    """Figures of one model; megabytes are millions of bytes.

    Attributes:
        export_s: how long it took, its parity check included.
        first_answer_s: from before `dragoman serve` was started until it had answered a text.
        resident_mb: memory of the server after it.
    """

    checkpoint_mb: float
    export_peak_mb: float
    export_s: float
    bundle_mb: float
    first_answer_s: float
    resident_mb: float
    server_peak_mb: float


def measure(checkpoint: Path, out: Path, text: str) -> Cost:
    """Export a checkpoint to int8 in a process of its own, serve the bundle, and translate a text.

    Raises:
        BundleError: the export failed; what it said is on stderr.
        ServerError: the server ended or was not ready in time.
    """
    start_s = time.monotonic()
    peak_mb = _export(checkpoint, out)
    export_s = time.monotonic() - start_s
    start_s = time.monotonic()
    with running(serve_command("--models", out)) as server:
        with Client(server.address) as client:
            client.translate(text, source_language="en", target_language="de")
        first_answer_s = time.monotonic() - start_s
        resident, peak = (read(server.process.pid) * _MIB / _MB for read in (resident_mib, peak_resident_mib))
    return Cost(
        checkpoint_mb=_size_mb(checkpoint / "model.safetensors"),
        export_peak_mb=peak_mb,
        export_s=export_s,
        bundle_mb=sum(map(_size_mb, out.iterdir())),
        first_answer_s=first_answer_s,
        resident_mb=resident,
        server_peak_mb=peak,
    )


def _export(checkpoint: Path, out: Path) -> float:
    """Run `dragoman export`; gives the most megabytes that it held."""
    command = [sys.executable, "-m", "dragoman.cli", "export", str(checkpoint), *_LANGUAGES, "--out", str(out)]
    process = subprocess.Popen(command, stdout=sys.stderr)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise BundleError(f"{checkpoint}: dragoman export failed with exit code {process.returncode}")
    return usage.ru_maxrss * _KIB / _MB


def _size_mb(file: Path) -> float:
    return file.stat().st_size / _MB
