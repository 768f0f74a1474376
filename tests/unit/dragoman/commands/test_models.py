"""The models of a folder, as a table and as JSON."""

import json
from pathlib import Path

import pytest

from dragoman.cli import main
from plugins.library.names import Name
from service.settings import DEFAULT_MODELS
from tests.shelved import shelve

MANIFEST = json.loads((Path(__file__).parents[4] / "models/en-de/bundle/bundle.json").read_text())
HEADS = ["NAME", "FROM", "TO", "FAMILY", "PRECISION", "MAX SOURCE", "MAX TARGET", "VOCABULARY", "PARAMETERS", "NOTE"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, source in (("second", "de-AT"), ("first", "en")):
        (tmp_path / name).mkdir()
        manifest = MANIFEST | {
            "name": name,
            "languages": {"sources": [source], "targets": ["de"]},
            "max_target_tokens": 99,
        }
        (tmp_path / name / "bundle.json").write_text(json.dumps(manifest))
    return tmp_path


def test_a_table_has_a_line_for_each_model_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", f"--models={folder}"]) == 0
    heads, *lines = capsys.readouterr().out.splitlines()
    starts = [heads.index(head) for head in HEADS]
    cells = [[line[start:].split("  ")[0].strip() for start in starts] for line in lines]
    shared = ["de", *(str(MANIFEST[name]) for name in ("family", "precision", "max_source_tokens"))]
    rest = [str(MANIFEST[name]) for name in ("vocabulary_size", "parameters", "note")]
    assert cells == [["first", "en", *shared, "99", *rest], ["second", "de-AT", *shared, "99", *rest]]
    assert not any(line.endswith(" ") for line in (heads, *lines))


def test_json_has_an_object_for_each_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", f"--models={folder}", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    shown = {"max_target_tokens": 99, "name": "first", "source_languages": ["en"], "target_languages": ["de"]}
    assert first == {name: (MANIFEST | shown)[name] for name in first}
    assert len(first) == len(HEADS)
    assert second == first | {"name": "second", "source_languages": ["de-AT"]}


def test_a_folder_without_models_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", f"--models={tmp_path}"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"{tmp_path}: there is no bundle" in err


def test_flags_for_a_server_need_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["models", f"--models={tmp_path}", "--api-key=x"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "dragoman models: argument --api-key: needs --address\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder with three models."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DRAGOMAN_SERVER", "127.0.0.1:9")  # it is not asked
    for name in (Name("hub", "someone/opus"), Name("firefox", "en-de"), Name("firefox", "de-en")):
        shelve(tmp_path / "dragoman", name)
    return tmp_path / "dragoman"


def test_what_lies_in_the_cache_folder(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--cached"]) == 0
    heads, *lines = capsys.readouterr().out.splitlines()
    assert heads.split("  ")[0] == "NAME"
    assert [line.split()[:3] for line in lines] == [
        ["firefox:de-en", "firefox-en-de", "apache-2.0"],
        ["firefox:en-de", "firefox-en-de", "apache-2.0"],
        ["someone/opus", "hub-en-de", "apache-2.0"],
    ]
    assert main(["models", "--cached", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)[0]
    assert first.keys() == {"name", "model", "licence", "megabytes", "last_used"}


def test_models_are_removed_by_name(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--remove", "firefox:en-de", "de-en", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == ["someone/opus"]
    assert main(["models", "--remove", "firefox:en-de"]) == 2
    assert capsys.readouterr().err == (f"dragoman models: firefox:en-de: is not in {cache}; there are: someone/opus\n")
    assert main(["models", "--remove", "someone/opus", "--json"]) == 0
    said = capsys.readouterr()
    assert (json.loads(said.out), said.err) == ([], "someone/opus: removed\n")
    assert main(["models", "--cached"]) == 0
    assert capsys.readouterr().out == "the cache folder has no models; dragoman models --add NAME imports one\n"
    assert [file for file in (cache / "models").rglob("*") if file.is_file()] == []


def test_all_of_firefox_are_removed_by_one_name(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--remove", "firefox:all", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == ["someone/opus"]


def test_what_is_there_is_not_added_again(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--add", "firefox:en-de", "de-en", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 3


def test_a_bundle_needs_no_import(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--add", "en-de", "firefox:de-en", "--json"]) == 0
    said = capsys.readouterr()
    assert len(json.loads(said.out)) == 3
    assert said.err.splitlines() == [f"{DEFAULT_MODELS / 'en-de'}: has a bundle, which needs no import"]


def test_a_folder_that_is_not_there_cannot_be_added(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = cache.parent / "nowhere"
    assert main(["models", "--add", str(folder)]) == 2
    assert capsys.readouterr().err.startswith(f"dragoman models: {folder}: no such folder")
