import hashlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman.errors import DataError
from plugins.library import download
from plugins.library.fetching import fetch
from tests import web
from tests.web import COMMIT, Web, firefox_list

ROOT = Path(__file__).parents[3]
WEIGHTS = bytes(range(256)) * 4_000
FILES = {
    "config.json": b'{"model_type": "marian"}',
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": b"not fetched",
    "README.md": b"---\nlicense: cc-by-4.0\n---\n# A model\n",
    "LICENSE.txt": b"words",
}


PROGRAM = """
import json, resource, sys
from dragoman.errors import DragomanError
from plugins.library.fetching import fetch
for line in sys.stdin:
    name, limit_bytes = json.loads(line)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, resource.RLIM_INFINITY))
    found, said = {}, ""
    try:
        fetched = fetch(name, lambda message: None)
        found = {"folder": str(fetched.folder), "name": fetched.name, **fetched.origin}
    except (DragomanError, OSError) as error:
        said = str(error)
    print(json.dumps([found, said]), flush=True)
"""


class Hub(NamedTuple):
    """A hub, and a process that fetches from it: the hub's library reads its environment once.

    Attributes:
        web: the hub.
        home: where the library keeps files.
        process: fetches the names that it reads.
    """

    web: Web
    home: Path
    process: "subprocess.Popen[str]"

    def fetch(self, name: str, limit_bytes: int = resource.RLIM_INFINITY) -> tuple[dict[str, str], str]:
        """Give what was found, and what was said."""
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps([name, limit_bytes]), file=self.process.stdin, flush=True)
        found, said = json.loads(self.process.stdout.readline())
        return found, said


@pytest.fixture(scope="module")
def shared_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    home = tmp_path_factory.mktemp("home")
    with web.serving() as server:
        variables = {"HF_ENDPOINT": server.address, "HF_HOME": str(home)}
        limits = {"HF_HUB_DOWNLOAD_TIMEOUT": "1", "HF_HUB_ETAG_TIMEOUT": "1"}
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env={**os.environ, **variables, **limits},
        ) as process:
            yield Hub(server, home, process)


@pytest.fixture
def name(tmp_path: Path) -> str:
    """Of a model that no other test has fetched."""
    return f"{tmp_path.name}/opus-mt-en-de"


@pytest.fixture
def hub(shared_hub: Hub, name: str, tmp_path: Path) -> Iterator[Hub]:
    """A hub with one model."""
    folder = tmp_path / "on-the-hub"
    folder.mkdir()
    for file, content in FILES.items():
        (folder / file).write_bytes(content)
    shared_hub.web.add_model(name, folder)
    yield shared_hub
    shared_hub.web.refuse.clear()
    shared_hub.web.silent = False


def test_a_model_of_the_hub_with_its_licence_and_its_commit(hub: Hub, name: str) -> None:
    found, _ = hub.fetch(name)
    folder = Path(found.pop("folder"))
    assert folder.is_relative_to(hub.home)
    assert folder.name == COMMIT
    assert found == {"name": "opus-mt-en-de", "revision": COMMIT, "licence": "cc-by-4.0"}
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        name: content for name, content in FILES.items() if name != "pytorch_model.bin"
    }


def test_a_transfer_that_breaks_off_goes_on(hub: Hub, name: str, tmp_path: Path) -> None:
    weights = WEIGHTS * 24  # the library writes by 10 MB
    (tmp_path / "on-the-hub" / "model.safetensors").write_bytes(weights)
    hub.web.add_model(name, tmp_path / "on-the-hub")
    hub.web.cut = 1
    found, said = hub.fetch(name)
    assert (Path(found["folder"]) / "model.safetensors").read_bytes() == weights, said
    weights_path = f"/{name}/resolve/{COMMIT}/model.safetensors"
    starts = [asked for method, path, asked in hub.web.requests if (method, path) == ("GET", weights_path)]
    assert starts[0] == ""
    assert starts[1].startswith("bytes=10485760-")


def test_files_that_are_elsewhere(hub: Hub, name: str) -> None:
    path = f"/{name}/resolve/{COMMIT}/model.safetensors"
    hub.web.files["/elsewhere"] = hub.web.files.pop(path)
    hub.web.redirect[path] = "/elsewhere"
    found, said = hub.fetch(name)
    assert (Path(found["folder"]) / "model.safetensors").read_bytes() == WEIGHTS, said


@pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
def test_content_that_is_not_what_the_hub_says(hub: Hub, name: str, file: str) -> None:
    path = f"/{name}/resolve/{COMMIT}/{file}"
    whole = hub.web.files[path]
    hub.web.files[path] = whole[:-1] + b"?"
    found, said = hub.fetch(name)
    assert found == {}
    assert said.splitlines()[-1].startswith(f"{file}: ")
    assert "the hub says" in said
    hub.web.files[path] = whole
    found, said = hub.fetch(name)
    assert (Path(found["folder"]) / file).read_bytes() == whole, said


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        ((401, "RepoNotFound"), "no such folder, and no such model on the hub"),
        ((403, "GatedRepo"), "its owner wants terms accepted: do so on its page, and set HF_TOKEN"),
        ((400, ""), "the hub refuses it: "),
    ],
)
def test_what_the_hub_refuses(hub: Hub, name: str, refusal: tuple[int, str], said: str) -> None:
    hub.web.refuse["/api/models"] = refusal
    found, error = hub.fetch(name)
    assert found == {}
    assert error.splitlines()[-1].startswith(f"{name}: {said}")


def test_a_model_that_the_hub_does_not_have(hub: Hub) -> None:
    assert hub.fetch("nobody/nothing") == ({}, "nobody/nothing: no such folder, and no such model on the hub")


def test_a_hub_that_does_not_answer(hub: Hub, name: str) -> None:
    hub.web.silent = True
    found, said = hub.fetch(name)
    assert found == {}
    assert (
        said.splitlines()[-1]
        == f"{name}: no such folder, and the hub ({hub.web.address}) cannot be reached: ReadTimeout"
    )


def test_a_disk_that_is_full(hub: Hub, name: str) -> None:
    """A limit of the size of files stands for it: to a program both are an OSError of a write."""
    found, said = hub.fetch(name, limit_bytes=100_000)
    assert found == {}
    assert said.splitlines()[-1] == "[Errno 27] File too large"
    found, said = hub.fetch(name)
    assert (Path(found["folder"]) / "model.safetensors").read_bytes() == WEIGHTS, said


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("---\nlicense: mit\n---\n", "mit"),
        ("---\nlicense: other\nlicense_name: own-words\n---\n", "own-words"),
        ("---\nlicense: [\n---\n", ""),
        ("# No metadata\n", ""),
        (None, ""),
    ],
)
def test_the_licence_of_a_folder(tmp_path: Path, card: str | None, licence: str) -> None:
    if card is not None:
        (tmp_path / "README.md").write_text(card)
    assert fetch(str(tmp_path), print) == (tmp_path, "", {"licence": licence}, False)


def test_a_model_of_firefox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PAUSE_S", 0.01)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    files = {"model.ende.intgemm.alphas.bin": WEIGHTS, "vocab.ende.spm": b"pieces", "lex.50.50.ende.s2t.bin": b"list"}
    with web.serving() as server:
        monkeypatch.setenv("DRAGOMAN_FIREFOX_MODELS", firefox_list(server, {"en-de": files}))
        server.cut = 1
        found = fetch("firefox:en-de", lambda message: None)
    assert {file.name: file.read_bytes() for file in found.folder.iterdir()} == files
    assert found.folder.is_relative_to(tmp_path / "dragoman" / "downloads")
    revision = hashlib.sha256(WEIGHTS).hexdigest()
    assert (found.name, found.origin) == ("firefox-en-de", {"revision": revision, "licence": "MPL-2.0"})


def test_all_of_firefox_is_no_model() -> None:
    with pytest.raises(DataError, match="firefox:all: an import makes one model; name a pair, such as firefox:en-de"):
        fetch("firefox:all", print)
