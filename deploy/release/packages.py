"""Both distributions, as sdist and wheel: from the same commit, the same bytes."""

import filecmp
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.release.source import NoReleaseError, Release

_DISTRIBUTIONS = ("dragoman", ".")  # folders of the commit


def build(source: Path, out: Path, epoch_s: int, distributions: Sequence[str] = _DISTRIBUTIONS) -> None:
    """Build distributions, each wheel from nothing but the sdist.

    Args:
        source: folder with the files of the commit.
        out: folder for the files.
        epoch_s: time of all files inside.
        distributions: their folders in `source`.
    """
    for distribution in distributions:
        with tempfile.TemporaryDirectory() as folder:
            sdist = _hatchling(source / distribution, "sdist", Path(folder, "sdist"), epoch_s)
            with tarfile.open(sdist) as archive:
                archive.extractall(folder, filter="data")
            unpacked = Path(folder, sdist.name.removesuffix(".tar.gz"))
            wheel = _hatchling(unpacked, "wheel", Path(folder, "wheel"), epoch_s)
            out.mkdir(parents=True, exist_ok=True)
            for built in (sdist, wheel):
                (out / built.name).write_bytes(built.read_bytes())


def build_twice(release: Release, out: Path) -> None:
    """Build in two folders, and compare.

    Args:
        release: what is built.
        out: folder for the files.

    Raises:
        NoReleaseError: a file differs.
    """
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        for folder, built in ((first, out), (second, Path(second, "built"))):
            source = Path(folder, "source")
            release.copy_to(source)
            build(source, built, release.epoch_s)
        names = sorted(file.name for file in out.iterdir())
        _, different, missing = filecmp.cmpfiles(out, Path(second, "built"), names, shallow=False)
        if different or missing:
            raise NoReleaseError(f"built again, {[*different, *missing][0]} is another file")


def check(out: Path) -> None:
    """Have twine check what a package index would show, and check-wheel-contents what the wheels hold.

    Raises:
        NoReleaseError: one of them finds something.
    """
    _run("twine", "check", "--strict", *sorted(map(str, out.iterdir())))
    check_wheels(sorted(out.glob("*.whl")))


def check_wheels(wheels: Sequence[Path]) -> None:
    """Have check-wheel-contents check what wheels hold.

    Raises:
        NoReleaseError: it finds something.
    """
    # W002, equal files: bundles of different models have the same tokenizer and some of the same graphs.
    _run("check_wheel_contents", "--ignore", "W002", *map(str, wheels))


def _run(tool: str, *words: str) -> None:
    done = subprocess.run([sys.executable, "-m", tool, *words], capture_output=True, text=True)
    if done.returncode:
        raise NoReleaseError(f"{tool}: {' '.join((done.stdout + done.stderr).split())}")


def _hatchling(source: Path, target: str, out: Path, epoch_s: int) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch_s)}
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
    (built,) = out.iterdir()
    return built
