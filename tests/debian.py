"""Packages of Debian, downloaded with lists and archives of our own: nothing is installed, nothing else changes."""

import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.made_once import ROOT, filled_once

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
OLDEST = "bookworm"
NEWEST = "trixie"


class NoPackagesError(Exception):
    """The packages cannot be had here; the message says why in one line."""


def is_debian() -> bool:
    """Whether packages can be downloaded and unpacked here."""
    return all(map(shutil.which, ("apt-get", "dpkg"))) and _KEYRING.exists()


def mirror() -> str:
    """The mirror that this machine uses.

    Raises:
        NoPackagesError: there is none.
    """
    for line in _output("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)").splitlines():
        uri, release = line.rsplit(" ", 1)
        if release in (OLDEST, NEWEST):
            return uri
    raise NoPackagesError("apt knows no Debian mirror")


@cache
def unpacked(package: str, release: str) -> Path:
    """Give a folder with the files of a package, without those that it needs; kept in .cache/.

    Args:
        package: its name.
        release: such as trixie.

    Raises:
        NoPackagesError: it cannot be had here.
    """

    def fetch(folder: Path) -> None:
        with TemporaryDirectory() as lists:
            archive = Archive(Path(lists), release)
            archive.download(package)
            archive.unpack(folder)

    folder = ROOT / ".cache" / f"{package}-{release}"
    filled_once(folder, fetch)
    return folder


class Archive:
    """The packages of some releases.

    Args:
        folder: for lists and packages, as long as they are needed.
        releases: such as trixie; packages come of this machine's where it is among them, else of the first.
        architecture: another than this machine's, of which nothing counts as installed.

    Raises:
        NoPackagesError: the lists cannot be fetched.
    """

    def __init__(self, folder: Path, *releases: str, architecture: str = "") -> None:
        if not is_debian():
            raise NoPackagesError("not a Debian system")
        for name in ("lists/partial", "archives/partial", "sources"):
            (folder / name).mkdir(parents=True)
        sources = [f"deb [signed-by={_KEYRING}] {mirror()} {release} main\n" for release in releases]
        (folder / "sources/debian.list").write_text("".join(sources))
        options = {
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": folder / "sources",
            "Dir::State::lists": folder / "lists",
            "Dir::Cache": folder,
            "APT::Default-Release": host if (host := _host_release()) in releases else releases[0],
            "APT::Sandbox::User": "root",
        }
        if architecture:
            (folder / "status").touch()
            options |= {
                "APT::Architecture": architecture,
                "APT::Architectures::": architecture,
                "Dir::State::status": folder / "status",
            }
        self._apt = ["apt-get", "--yes", *(f"-o{name}={value}" for name, value in options.items())]
        self._packages = folder / "archives"
        self._run("update")

    def download_with_dependencies(self, *packages: str) -> None:
        """Download packages with what they need and is not installed.

        Raises:
            NoPackagesError: they cannot be downloaded.
        """
        self._run("install", "--download-only", "--no-install-recommends", *packages)

    def download(self, *packages: str) -> None:
        """Download packages alone, of another release as `package/release`.

        Raises:
            NoPackagesError: they cannot be downloaded.
        """
        self._run("download", *packages)

    def unpack(self, folder: Path) -> None:
        """Unpack all that was downloaded."""
        for package in self._packages.glob("*.deb"):
            _output("dpkg", "-x", package, folder)

    def _run(self, *words: str) -> None:
        _output(*self._apt, *words, cwd=self._packages)


def _host_release() -> str:
    lines = Path("/etc/os-release").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line).get("VERSION_CODENAME", OLDEST)


def _output(*command: str | Path, cwd: Path | None = None) -> str:
    try:
        return subprocess.run(command, cwd=cwd, check=True, text=True, capture_output=True).stdout
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise NoPackagesError(f"cannot get Debian's packages: {reason}") from error
