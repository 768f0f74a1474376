"""Bundles for measurements, made by `dragoman export` in a process of its own: the measuring process needs no torch."""

import subprocess
import sys
from pathlib import Path

from dragoman.errors import BundleError

_LANGUAGES = ("--source-language=en", "--target-language=de")  # of all that is measured


def exported(checkpoint: Path, precision: str, work: Path, data: Path | None = None) -> Path:
    """Return a checkpoint's bundle; if it is not in the folder, it is made, and compared on `data` or its own pairs."""
    out = bundle_folder(work, precision)
    if not out.exists():
        command = [sys.executable, "-m", "dragoman.cli", "export", str(checkpoint), *_LANGUAGES]
        command += ["--precision", precision, "--out", str(out), *(["--data", str(data)] if data else [])]
        done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True, check=False)
        sys.stderr.write(done.stderr)
        if done.returncode:
            *_, last = ["it printed nothing", *done.stderr.strip().splitlines()]
            raise BundleError(f"{checkpoint}: dragoman export failed with exit code {done.returncode}: {last}")
    return out


def bundle_folder(work: Path, precision: str) -> Path:
    return work / f"bundle-{precision}"
