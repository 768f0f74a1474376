"""An ARM machine for one command at a time: Debian's packages and wheels for arm64 in a folder, run by qemu.

Nothing is installed, and no other process notices: the kernel runs ARM programs by qemu in a user namespace alone.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests import debian
from tests.made_once import ROOT, filled_once

_PYTHON = "3.11"  # of Debian's packages
_PACKAGES = ("python3", "bash", "dash", "coreutils", "libc-bin", "openssl", "ca-certificates", "libstdc++6")
_PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
# What tests of the service need, of the extras `dev` and `train`; neither torch nor programs.
_FOR_TESTS = frozenset(
    {"deepl", "dnslib", "google-cloud-translate", "griffelib", "hpack", "hyperframe", "hypothesis", "libretranslatepy"}
    | {
        "onnx",
        "openapi-spec-validator",
        "playwright",
        "pytest",
        "pytest-asyncio",
        "python-docx",
        "python-pptx",
        "trustme",
    }
)
# How the kernel knows programs for arm64, and what runs them: see its admin-guide/binfmt-misc.
_MAGIC = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
_MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
_ENTER = f"""set -e
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf %s ':arm64:M::{_MAGIC}:{_MASK}:'"$1:F" > /proc/sys/fs/binfmt_misc/register
for place in proc dev sys; do mount --rbind "/$place" "$2/$place"; done
root=$2; shift 2
exec chroot "$root" sh -c 'cd /repository; exec "$@"' sh "$@"
"""


class NoMachineError(Exception):
    """There can be none here; the message says why in one line."""


class Machine:
    """What an ARM processor runs.

    Args:
        folder: for packages and wheels, kept between runs.
        root: for the files of this run.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        if os.geteuid() != 0:
            raise NoMachineError("not root")
        if not shutil.which("unshare"):
            raise NoMachineError("there is no unshare")
        self._qemu = debian.unpacked("qemu-user", debian.NEWEST) / "usr/bin/qemu-aarch64"
        filled_once(folder / "system", _fetch_system)
        filled_once(folder / "wheels", _fetch_wheels)
        self.root = root
        for kept, place in (("system", ""), ("wheels", "wheels")):
            shutil.copytree(folder / kept, root / place, symlinks=True, dirs_exist_ok=True)
        _copy_repository(root / "repository")
        for place in ("proc", "dev", "sys", "tmp"):
            (root / place).mkdir(exist_ok=True)
        # Not by PYTHONPATH, which some tests set.
        (root / "usr/lib/python3/dist-packages/repository.pth").write_text("/repository\n/wheels\n")
        (root / "etc/passwd").write_text("root:x:0:0::/tmp:/bin/sh\n")
        (root / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")

    def command(self, processor: str, *arguments: str) -> list[str]:
        """Give the command that runs Python with arguments, in the folder of a copy of the repository.

        Args:
            processor: a name that qemu knows; `max` has all that it can emulate.
            arguments: of Python.
        """
        variables = {
            "QEMU_CPU": processor,
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": "/tmp",
            "LC_ALL": "C.UTF-8",
        }
        return [
            "nice", "-n", "15", "unshare", "--user", "--map-root-user", "--mount",
            "sh", "-c", _ENTER, "sh", str(self._qemu), str(self.root),
            "env", "-i", *(f"{name}={value}" for name, value in variables.items()), "/usr/bin/python3", *arguments,
        ]  # fmt: skip


def _project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def serving() -> Iterator[str]:
    """Give what a server needs, and what it needs for documents and traces."""
    server, client = map(_project, (ROOT, ROOT / "dragoman"))
    extras = server["optional-dependencies"]
    yield from server["dependencies"] + extras["cpu"] + extras["tracing"]
    yield from client["dependencies"] + client["optional-dependencies"]["documents"]


def _for_tests() -> Iterator[str]:
    extras = _project(ROOT)["optional-dependencies"]
    yield from (one for one in extras["dev"] + extras["train"] if re.split(r"[<>=\[; ]", one)[0] in _FOR_TESTS)


def download_wheels(needed: Sequence[str], python: str, *options: str) -> None:
    """Have pip find wheels for ARM of packages and of all that they need, and none built here.

    Args:
        needed: requirements; those of Dragoman itself are left out.
        python: version.
        options: of pip install, such as --target.

    Raises:
        CalledProcessError: there are none, or no index can be reached.
    """
    others = [one for one in needed if not one.startswith("dragoman")]
    platforms = [f"--platform={platform}" for platform in _PLATFORMS]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    command += [*platforms, f"--python-version={python}", "--implementation=cp", *options, *others]
    subprocess.run(command, check=True, capture_output=True, text=True)


def _fetch_system(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as lists:
        archive = debian.Archive(Path(lists), debian.OLDEST, architecture="arm64")
        archive.download_with_dependencies(*_PACKAGES)
        archive.unpack(folder)


def _fetch_wheels(folder: Path) -> None:
    try:
        download_wheels([*serving(), *_for_tests()], _PYTHON, f"--target={folder}")
        # Of our own, only what says their versions: the code is that of the repository.
        own = [str(ROOT / "dragoman"), str(ROOT)]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, f"--target={folder}", *own], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise NoMachineError(f"pip: {(error.stderr.strip().splitlines() or ['no message'])[-1]}") from error


def _copy_repository(folder: Path) -> None:
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in names:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
