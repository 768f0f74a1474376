import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from filelock import FileLock

from dragoman.errors import DataError
from plugins.library.names import Name
from plugins.library.store import Store
from service import model_locations
from service.settings import Settings
from tests import web
from tests.server_process import BUNDLE, REPOSITORY
from tests.shelved import shelve
from tests.web import Web, firefox_list

OPUS = Name("hub", "someone/opus-mt-en-de")
bring = partial(model_locations.find, bring_in=True)
find = partial(model_locations.find, bring_in=False)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("DRAGOMAN_FIREFOX_MODELS", "http://127.0.0.1:9/models.json")
    return tmp_path / "dragoman"


@pytest.fixture
def server() -> Iterator[Web]:
    with web.serving() as running:
        yield running


def firefox(pair: str) -> Name:
    return Name("firefox", pair)


def test_what_lies_in_the_cache_folder_is_served_without_a_network(root: Path) -> None:
    entry = shelve(root, OPUS)
    os.utime(entry.folder / "used", (0, 0))
    locations = bring(Settings(models=f"{OPUS},{BUNDLE}"))
    assert (list(locations.folders), locations.pivot) == ([entry.bundle, BUNDLE], "")
    assert entry.last_used > "2020"


def test_nothing_is_imported_where_it_is_only_looked_up(root: Path) -> None:
    assert find(Settings(models=f"{OPUS},firefox:en-de,firefox:de-fr,firefox:all")).folders == []
    assert not root.exists()


def test_two_models_stand_for_one_that_there_is_not(root: Path) -> None:
    entries = [shelve(root, firefox("de-en")), shelve(root, firefox("en-fr"))]
    locations = bring(Settings(models="firefox:de-fr"))
    assert (list(locations.folders), locations.pivot) == ([entry.bundle for entry in entries], "en")
    own = shelve(root, firefox("de-fr"))
    assert bring(Settings(models="firefox:de-fr")) == ([own.bundle], "", False)


def test_several_names_give_each_model_once(root: Path) -> None:
    there, back = shelve(root, firefox("en-de")), shelve(root, firefox("de-en"))
    shelve(root, firefox("en-fr"))
    locations = bring(Settings(models=("firefox:en-de", "de-en", "de-fr", "en-de")))
    assert [folder.parts[-3] for folder in locations.folders] == ["en-de", "de-en", "en-fr"]
    assert list(locations.folders)[:2] == [there.bundle, back.bundle]


def test_a_model_that_cannot_be_imported(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        bring(Settings(models=str(OPUS)))
    assert ended.value.code == 2
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1] == (
        f"dragoman import: {OPUS}: no such folder, and the hub (http://127.0.0.1:9) cannot be reached: ConnectError"
    )
    assert Store(root).entries() == []
    assert [file for file in (root / "models").rglob("*") if file.is_file()] == []


def test_a_list_of_firefox_that_cannot_be_had(root: Path) -> None:
    with pytest.raises(DataError, match=r"127.0.0.1:9/models.json: cannot be fetched: Connection refused"):
        bring(Settings(models="firefox:en-de"))


def test_a_pair_that_firefox_has_not(root: Path, server: Web) -> None:
    url = firefox_list(server, {"en-de": {"model.bin": b"x"}})
    with pytest.raises(DataError, match="firefox:en-fr: there is no such model, and none over en; there are: en-de"):
        bring(Settings(models="firefox:en-fr", firefox_models=url))


def test_the_folder_of_a_model_has_another_name_once_a_file_of_it_is_written(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "marian"}')
    with pytest.raises(SystemExit):
        bring(Settings(models=folder))
    assert Store(root).entries() == []


def test_a_second_process_waits_for_the_first_and_takes_what_that_has_made(root: Path) -> None:
    program = (
        "from service.model_locations import find; from service.settings import load; "
        "print(*find(load(), bring_in=True).folders)"
    )
    with FileLock(Store(root).lock_file(OPUS)):
        second = subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, "DRAGOMAN_MODELS": str(OPUS)},
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert second.stderr
        assert second.stderr.readline() == f"another process imports {OPUS}; waiting for it\n"
        entry = shelve(root, OPUS)
    out, rest = second.communicate()
    assert (out, rest, second.returncode) == (f"{entry.bundle}\n", "", 0)


def test_a_process_that_is_told_to_end_ends_its_import_and_leaves_nothing(root: Path, server: Web) -> None:
    server.silent = True
    program = "from service.model_locations import find; from service.settings import load; find(load(), bring_in=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "DRAGOMAN_MODELS": str(OPUS), "HF_ENDPOINT": server.address},
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    for line in process.stderr:
        if line.startswith("no folder"):  # the import runs
            break
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 128 + signal.SIGTERM
    assert process.stderr.read() == ""  # at once: the import, which has this pipe too, has ended
    process.stderr.close()
    assert [file for file in (root / "models").rglob("*") if file.is_file() or file.suffix == ".partial"] == []


def test_all_of_firefox_once_its_list_was_read(root: Path, server: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    url = firefox_list(server, {key: {"model.bin": b"x"} for key in ("en-de", "de-en")})
    entries = [shelve(root, firefox(pair)) for pair in ("de-en", "en-de")]
    shelve(root, firefox("en-fr"))  # which the list has not
    settings = Settings(models="firefox:all", firefox_models=url)
    assert find(settings).folders == []
    locations = bring(settings)
    assert locations == ([entry.bundle for entry in entries], "en", True)
    server.requests.clear()
    assert bring(settings) == find(settings) == locations
    assert server.requests == []


def test_of_all_of_firefox_what_cannot_be_imported_is_left_out(
    root: Path, server: Web, capfd: pytest.CaptureFixture[str]
) -> None:
    url = firefox_list(server, {key: {"model.pt": b"x"} for key in ("en-de", "de-en")})
    settings = Settings(models="firefox:all", firefox_models=url)
    entry = shelve(root, firefox("de-en"))
    assert bring(settings).folders == [entry.bundle]
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "1 of 1:"
    assert ".pt): not supported" in said[-2]
    assert said[-1] == "firefox:en-de: is left out"
    Store(root).remove(firefox("de-en"))
    with pytest.raises(DataError, match="firefox:all: none of 2 models could be imported"):
        bring(settings)
