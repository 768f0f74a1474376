import os
import time
from pathlib import Path

import pytest

from dragoman.bundle import find_bundles
from plugins.library.names import Name
from plugins.library.store import Origin, Store
from tests.shelved import shelve

OPUS = Name("hub", "Helsinki-NLP/opus-mt-en-de")
FIREFOX = Name("firefox", "en-de")


def test_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Store().root == tmp_path / "dragoman"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store().root == tmp_path / ".cache" / "dragoman"


def test_what_was_put_in_is_found_by_name_precision_and_revision(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.find(OPUS, "int8") is None
    entry = shelve(tmp_path, OPUS)
    assert store.find(OPUS, "int8") == store.find(OPUS, "int8", entry.origin.revision) == entry
    assert store.find(OPUS, "fp16") is store.find(FIREFOX, "int8") is store.find(OPUS, "int8", "2" * 40) is None
    assert find_bundles(tmp_path) == [entry.bundle]


def test_the_revision_that_came_last_is_the_one_that_is_meant(tmp_path: Path) -> None:
    old = shelve(tmp_path, OPUS)
    os.utime(old.folder, (0, 0))
    new = shelve(tmp_path, OPUS, revision="2" * 40)
    assert Store(tmp_path).find(OPUS, "int8") == new


def test_a_list(tmp_path: Path) -> None:
    shelve(tmp_path, FIREFOX, source="de", target="fr")
    shelve(tmp_path, OPUS)
    first, second = Store(tmp_path).entries()
    assert (first.name, first.model, first.licence) == (str(OPUS), "hub-en-de", "apache-2.0")
    assert (second.name, second.model) == (str(FIREFOX), "firefox-de-fr")
    assert 5 < first.megabytes < 100
    assert (
        abs(time.mktime(time.strptime(first.last_used, "%Y-%m-%dT%H:%M:%S+00:00")) - time.timezone - time.time()) < 60
    )


def test_the_use_is_noted_where_the_folder_can_be_written_to(tmp_path: Path) -> None:
    entry = shelve(tmp_path, OPUS)
    os.utime(entry.folder / "used", (0, 0))
    assert entry.last_used == "1970-01-01T00:00:00+00:00"
    entry.note_use()
    assert entry.last_used > "2020"
    (entry.folder / "used").unlink()
    (entry.folder / "used").mkdir()
    entry._replace(folder=entry.folder / "nowhere").note_use()


def test_what_is_removed_is_gone(tmp_path: Path) -> None:
    shelve(tmp_path, OPUS)
    shelve(tmp_path, OPUS, revision="2" * 40)
    kept = shelve(tmp_path, FIREFOX)
    store = Store(tmp_path)
    assert store.remove(OPUS) == 2
    assert store.remove(OPUS) == 0
    assert store.entries() == [kept]
    assert find_bundles(tmp_path) == [kept.bundle]


def test_what_was_not_finished_is_not_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.adding(OPUS) as folder:
        (folder / "bundle").mkdir()
        (folder / "bundle" / "bundle.json").touch()
        assert find_bundles(tmp_path) == store.entries() == []
    assert not folder.exists()


def test_what_a_killed_process_left_is_removed_by_the_next_that_makes_the_same(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.adding(OPUS) as folder:
        left = folder.with_name(".of-another.partial")
        left.mkdir()
    with store.adding(FIREFOX):
        assert left.exists()
    with store.adding(OPUS) as folder:
        assert not left.exists()
        assert folder.exists()


def test_an_origin_that_cannot_be_read_is_no_entry(tmp_path: Path) -> None:
    entry = shelve(tmp_path, OPUS)
    (entry.folder / "origin.json").write_text("{")
    assert Store(tmp_path).entries() == []
    assert Store(tmp_path).find(OPUS, "int8") is None


def test_an_origin_is_read_as_it_was_written() -> None:
    origin = Origin(name="a/b", revision="1")
    assert Origin.model_validate_json(origin.model_dump_json()) == origin
