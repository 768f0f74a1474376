"""`make release`: what it refuses, and that its packages do not depend on where and when they are built."""

import os
import subprocess
from pathlib import Path

import pytest

from deploy.release import images, packages
from deploy.release.__main__ import write_sums
from deploy.release.source import NoReleaseError, Release

ROOT = Path(__file__).parents[3]
EPOCH_S = 1_764_000_000
PROTO = "proto/dragoman/v1/translation.proto"
PROMISED = "tests/contract/dragoman/v1/translation.proto"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A small one, ready to be released."""
    files = {
        "pyproject.toml": '[project]\nversion = "1.2.3"\n',
        "dragoman/pyproject.toml": '[project]\nversion = "1.2.3"\n',
        "CHANGELOG.md": "# Changes\n\n## 1.2.3, 2026-11-24\n",
        PROTO: "package dragoman.v1;\n",
        PROMISED: "package dragoman.v1;\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(repository: Path, *words: str) -> None:
    who = {f"GIT_{role}_{field}": "a@b" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}
    subprocess.run(["git", *words], cwd=repository, env=os.environ | who, check=True, capture_output=True)


def commit(repository: Path, *tags: str) -> None:
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--allow-empty", "--message=all")
    for tag in tags:
        git(repository, "tag", tag)


def refusal(repository: Path) -> str:
    with pytest.raises(NoReleaseError) as refused:
        Release.of(repository)
    return str(refused.value)


def test_a_commit_with_its_tag_is_released_as_it_is(repository: Path, tmp_path: Path) -> None:
    commit(repository, "v1.2.3")
    release = Release.of(repository)
    assert (release.version, len(release.commit)) == ("1.2.3", 40)
    (repository / "CHANGELOG.md").write_text("changed since\n")
    release.copy_to(tmp_path / "copy")
    assert (tmp_path / "copy" / "CHANGELOG.md").read_text().endswith("## 1.2.3, 2026-11-24\n")


def test_a_changed_tree_is_not(repository: Path) -> None:
    commit(repository, "v1.2.3")
    (repository / "note.txt").write_text("mine\n")
    assert refusal(repository) == "the tree is not clean: 1 files, such as note.txt"


@pytest.mark.parametrize(
    ("tag", "found"),
    [("nightly", "no tag of a version"), ("v1.2.4", "the tag v1.2.4"), ("1.2.3", "no tag of a version")],
)
def test_another_tag_is_not(repository: Path, tag: str, found: str) -> None:
    commit(repository, tag)
    assert refusal(repository) == f"HEAD has {found}, and pyproject.toml the version 1.2.3: git tag v1.2.3"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "dragoman/pyproject.toml",
            '[project]\nversion = "1.2.2"\n',
            "dragoman-server has the version 1.2.3, dragoman ",
        ),
        ("CHANGELOG.md", "## 1.2.3, not released\n", "CHANGELOG.md: ## 1.2.3, not released: write ## 1.2.3, DATE"),
        ("CHANGELOG.md", "## 1.2.2, 2026-11-01\n", "CHANGELOG.md: there is no heading of this version"),
        (PROTO, "package dragoman.v1;\nmessage New {}\n", "tests/contract is not the contract of 1.2.3"),
    ],
)
def test_a_version_that_is_not_ready_is_not(repository: Path, file: str, content: str, message: str) -> None:
    (repository / file).write_text(content)
    commit(repository, "v1.2.3")
    assert refusal(repository).startswith(message)


def test_where_there_is_no_repository_one_line_says_so(tmp_path: Path) -> None:
    assert "not a git repository" in refusal(tmp_path)


@pytest.mark.parametrize("distribution", ["dragoman", "."])
def test_packages_do_not_depend_on_where_when_and_by_whom_they_are_built(distribution: str, tmp_path: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = [name for name in tracked.split("\0") if name and not name.startswith(("tests/", "docs/"))]
    # Enough of each file to tell it apart: the models take most of the time, and are packed as anything else.
    contents = {name: (ROOT / name).read_bytes() for name in names}
    contents = {name: content if len(content) <= 200_000 else content[:4_096] for name, content in contents.items()}
    built = []
    for folder, mode, order in (("one", 0o600, 1), ("another/deeper", 0o664, -1)):
        source, out = tmp_path / folder / "source", tmp_path / folder / "built"
        for name in names[::order]:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(contents[name])
            (source / name).chmod(mode)
        packages.build(source, out, EPOCH_S, [distribution])
        built.append({file.name: file.read_bytes() for file in out.iterdir()})
    assert [name.rpartition(".")[2] for name in sorted(built[0])] == ["whl", "gz"]
    assert built[0] == built[1]


def test_images_are_left_out_where_there_is_no_docker(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, "v1.2.3")
    release = Release.of(repository)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert images.write(release, tmp_path) == ["images skipped: there is no docker"]


def test_the_sums_are_of_what_the_page_of_a_release_has(tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    names = ["dragoman-1.2.3-linux-amd64.tar", "packages/a.whl", "packages/b.tar.gz", "z.json"]
    for name in names:
        (tmp_path / name).write_text(name)
    write_sums(tmp_path)
    page = tmp_path / "page"
    page.mkdir()
    for name in ("SHA256SUMS", *names[1:]):
        (tmp_path / name).rename(page / Path(name).name)
    checked = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=page, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, "a.whl: OK\nb.tar.gz: OK\nz.json: OK\n")
