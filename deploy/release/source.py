"""What is released: a commit with a tag, and its files as they are in it."""

import filecmp
import re
import subprocess
import tarfile
import tomllib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

_TAG = re.compile(r"v\d+\.\d+\.\d+\w*")


class NoReleaseError(Exception):
    """Nothing can be released; the message says why in one line."""


@dataclass(frozen=True)
class Release:
    """What is released.

    Attributes:
        repository: its clone.
        version: of both distributions.
        commit: its full hash.
        epoch_s: when it was committed, in seconds since 1970; the time of whatever is built.
    """

    repository: Path
    version: str
    commit: str
    epoch_s: int

    @classmethod
    def of(cls, repository: Path) -> "Release":
        """Find out what HEAD is.

        Raises:
            NoReleaseError: the tree is not clean, or HEAD is not the commit of a version that is ready.
        """
        if changed := _git(repository, "status", "--porcelain").splitlines():
            raise NoReleaseError(f"the tree is not clean: {len(changed)} files, such as {changed[0][3:]}")
        version = _version(repository)
        tags = [tag for tag in _git(repository, "tag", "--points-at", "HEAD").split() if _TAG.fullmatch(tag)]
        if f"v{version}" not in tags:
            found = f"the tag {tags[0]}" if tags else "no tag of a version"
            raise NoReleaseError(f"HEAD has {found}, and pyproject.toml the version {version}: git tag v{version}")
        _check_papers(repository, version)
        commit, epoch_s = _git(repository, "log", "-1", "--format=%H %ct").split()
        return cls(repository, version, commit, int(epoch_s))

    def copy_to(self, folder: Path) -> None:
        """Write the files of the commit, and none beside them, to a new folder."""
        archive = subprocess.run(
            ["git", "archive", "--format=tar", self.commit], cwd=self.repository, check=True, capture_output=True
        )
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")


def _git(repository: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=repository, capture_output=True, text=True)
    if done.returncode:
        raise NoReleaseError(f"git {words[0]}: {(done.stderr.strip().splitlines() or ['no message'])[0]}")
    return done.stdout


def _version(repository: Path) -> str:
    server, client = (
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
        for folder in (repository, repository / "dragoman")
    )
    if server != client:
        raise NoReleaseError(f"dragoman-server has the version {server}, dragoman {client}: give them the same")
    return str(server)


def _check_papers(repository: Path, version: str) -> None:
    """Raise NoReleaseError where the change log or the contract of the release are not there."""
    changes = (repository / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    heading = next((line for line in changes if line.startswith(f"## {version},")), None)
    if heading is None or "not released" in heading:
        raise NoReleaseError(
            f"CHANGELOG.md: {heading or 'there is no heading of this version'}: write ## {version}, DATE"
        )
    promised, contract = (repository / folder / "dragoman" for folder in ("tests/contract", "proto"))
    if not _same(promised, contract):
        raise NoReleaseError(f"tests/contract is not the contract of {version}: cp -r proto/dragoman tests/contract")


def _same(one: Path, other: Path) -> bool:
    """Tell whether two folders have the same files with the same bytes."""
    names = [sorted(file.relative_to(folder) for file in folder.rglob("*.proto")) for folder in (one, other)]
    return names[0] == names[1] and all(filecmp.cmp(one / name, other / name, shallow=False) for name in names[0])
