"""Bundles for measurements, made by `dragoman export` in a process of its own: the measuring process needs no torch."""

import os
import subprocess
import sys
from pathlib import Path

from dragoman.errors import BundleError

_LANGUAGES = ("--source-language=en", "--target-language=de")  # of all that is measured
_KIB = 2**10  # in which Linux counts the memory of a process that has ended


def exported(checkpoint: Path, precision: str, work: Path, data: Path | None = None) -> Path:
    """Return the bundle of a checkpoint, made if it is not in the folder.

    Args:
        data: pairs on which it is compared with the checkpoint; None: those of the checkpoint.
    """
    out = bundle_folder(work, precision)
    if not out.exists():
        export(checkpoint, precision, out, *(["--data", str(data)] if data else []))
    return out


def bundle_folder(work: Path, precision: str) -> Path:
    return work / f"bundle-{precision}"


def export(checkpoint: Path, precision: str, out: Path, *arguments: str) -> int:
    """Run `dragoman export`; gives the most bytes that it held.

    Raises:
        BundleError: it failed; the message holds its last line.
    """
    command = [sys.executable, "-m", "dragoman.cli", "export", str(checkpoint), *_LANGUAGES]
    command += ["--precision", precision, "--out", str(out), *arguments]
    process = subprocess.Popen(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    with process.stderr:
        said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    sys.stderr.write(said)
    if process.returncode:
        *_, last = ["it printed nothing", *said.strip().splitlines()]
        raise BundleError(f"{checkpoint}: dragoman export failed with exit code {process.returncode}: {last}")
    return usage.ru_maxrss * _KIB
