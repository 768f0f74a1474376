import hashlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.errors import DataError
from plugins.library import download
from plugins.library.fetching import fetch
from tests import web
from tests.web import COMMIT, Web, firefox_list

ROOT = Path(__file__).parents[3]
NAME = "someone/opus-mt-en-de"
WEIGHTS = bytes(range(256)) * 4_000
FILES = {
    "config.json": b'{"model_type": "marian"}',
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": b"not fetched",
    "README.md": b"---\nlicense: cc-by-4.0\n---\n# A model\n",
    "LICENSE.txt": b"words",
}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Web]:
    """A hub with one model."""
    folder = tmp_path / "on-the-hub"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    with web.serving() as server:
        server.add_model(NAME, folder)
        yield server


def run(hub: Web, tmp_path: Path, name: str = NAME, limit_bytes: int = 0) -> tuple[dict[str, str], str]:
    """Fetches in a process of its own: the hub's library reads the environment once. Gives what it found and said."""
    program = (
        "import sys, json; from plugins.library.fetching import fetch; from dragoman.errors import DragomanError\n"
        "try: found = fetch(sys.argv[1], lambda message: None)\n"
        "except (DragomanError, OSError) as error: print(error, file=sys.stderr); sys.exit()\n"
        "print(json.dumps({'folder': str(found.folder), 'name': found.name, **found.origin}))"
    )
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_DOWNLOAD_TIMEOUT": "1",
        "HF_HUB_ETAG_TIMEOUT": "1",
    }
    limits = (limit_bytes, resource.RLIM_INFINITY)
    done = subprocess.run(
        [sys.executable, "-c", program, name],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits)) if limit_bytes else None,
    )
    return json.loads(done.stdout or "{}"), done.stderr.strip()


def test_a_model_of_the_hub_with_its_licence_and_its_commit(hub: Web, tmp_path: Path) -> None:
    found, _ = run(hub, tmp_path)
    assert found.pop("folder").startswith(str(tmp_path / "hf"))
    assert found == {"name": "opus-mt-en-de", "revision": COMMIT, "licence": "cc-by-4.0"}
    [folder] = (tmp_path / "hf").rglob(f"snapshots/{COMMIT}")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        name: content for name, content in FILES.items() if name != "pytorch_model.bin"
    }


def test_a_transfer_that_breaks_off_goes_on(hub: Web, tmp_path: Path) -> None:
    weights = WEIGHTS * 24  # the library writes by 10 MB
    (tmp_path / "on-the-hub" / "model.safetensors").write_bytes(weights)
    hub.add_model(NAME, tmp_path / "on-the-hub")
    hub.cut = 1
    found, said = run(hub, tmp_path)
    assert (Path(found["folder"]) / "model.safetensors").read_bytes() == weights, said
    starts = [asked for method, path, asked in hub.requests if method == "GET" and path.endswith(".safetensors")]
    assert starts[0] == ""
    assert starts[1].startswith("bytes=10485760-")


def test_files_that_are_elsewhere(hub: Web, tmp_path: Path) -> None:
    path = f"/{NAME}/resolve/{COMMIT}/model.safetensors"
    hub.files["/elsewhere"] = hub.files.pop(path)
    hub.redirect[path] = "/elsewhere"
    found, said = run(hub, tmp_path)
    assert (Path(found["folder"]) / "model.safetensors").read_bytes() == WEIGHTS, said


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_content_that_is_not_what_the_hub_says(hub: Web, tmp_path: Path, name: str) -> None:
    path = f"/{NAME}/resolve/{COMMIT}/{name}"
    whole = hub.files[path]
    hub.files[path] = whole[:-1] + b"?"
    found, said = run(hub, tmp_path)
    assert found == {}
    assert said.splitlines()[-1].startswith(f"{name}: ")
    assert "the hub says" in said
    hub.files[path] = whole
    found, said = run(hub, tmp_path)
    assert (Path(found["folder"]) / name).read_bytes() == whole, said


@pytest.mark.parametrize(
    ("name", "refusal", "said"),
    [
        ("nobody/nothing", None, "nobody/nothing: no such folder, and no such model on the hub"),
        (NAME, (401, "RepoNotFound"), f"{NAME}: no such folder, and no such model on the hub"),
        (NAME, (403, "GatedRepo"), f"{NAME}: its owner wants terms accepted: do so on its page, and set HF_TOKEN"),
        (NAME, (400, ""), f"{NAME}: the hub refuses it: "),
    ],
)
def test_what_the_hub_refuses(hub: Web, tmp_path: Path, name: str, refusal: tuple[int, str] | None, said: str) -> None:
    if refusal:
        hub.refuse["/api/models"] = refusal
    found, error = run(hub, tmp_path, name)
    assert found == {}
    assert error.splitlines()[-1].startswith(said)


def test_a_hub_that_does_not_answer(hub: Web, tmp_path: Path) -> None:
    hub.silent = True
    found, said = run(hub, tmp_path)
    assert found == {}
    assert (
        said.splitlines()[-1] == f"{NAME}: no such folder, and the hub ({hub.address}) cannot be reached: ReadTimeout"
    )


def test_a_disk_that_is_full(hub: Web, tmp_path: Path) -> None:
    """A limit of the size of files stands for it: to a program both are an OSError of a write."""
    found, said = run(hub, tmp_path, limit_bytes=100_000)
    assert found == {}
    assert said.splitlines()[-1] == "[Errno 27] File too large"
    found, said = run(hub, tmp_path)
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
