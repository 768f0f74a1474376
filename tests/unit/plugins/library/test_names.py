from pathlib import Path

import pytest

from dragoman.errors import DataError
from plugins.library.names import Name, meant, parse
from tests.server_process import BUNDLE


def test_what_names_mean(tmp_path: Path) -> None:
    words = [str(BUNDLE), str(BUNDLE.parents[1]), "Helsinki-NLP/opus-mt-en-de", "firefox:en-de", "firefox:all"]
    assert parse(words) == [
        Name("bundles", str(BUNDLE)),
        Name("bundles", str(BUNDLE.parents[1])),
        Name("hub", "Helsinki-NLP/opus-mt-en-de"),
        Name("firefox", "en-de"),
        Name("firefox", "all"),
    ]


def test_a_pair_behind_a_name_of_firefox_belongs_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "de-en").mkdir()
    assert list(map(str, parse(["firefox:en-de", "de-en", "en-zh_hant", "de-en"]))) == [
        "firefox:en-de",
        "firefox:de-en",
        "firefox:en-zh_hant",
    ]
    assert parse(["de-en"]) == [Name("bundles", "de-en")]


@pytest.mark.parametrize(
    ("file", "content", "kind"),
    [
        ("config.json", '{"model_type": "marian"}', "folder"),
        ("config.json", '{"d_model": 256}', "bundles"),  # a checkpoint of ours
        ("model.ende.intgemm.alphas.bin", "", "folder"),
        ("decoder.yml", "", "folder"),
        ("notes.txt", "", "bundles"),
    ],
)
def test_a_folder_that_can_be_imported_is_known_by_its_files(
    tmp_path: Path, file: str, content: str, kind: str
) -> None:
    (tmp_path / file).write_text(content)
    assert parse([str(tmp_path)]) == [Name(kind, str(tmp_path))]


def test_a_folder_has_one_name_however_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "decoder.yml").touch()
    monkeypatch.chdir(tmp_path)
    assert parse(["model", "./model", str(tmp_path / "model")]) == [Name("folder", str(tmp_path / "model"))]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (
            "firefox:en",
            "firefox:en: must be firefox:SOURCE-TARGET in small letters, such as firefox:en-de, or firefox:all",
        ),
        ("firefox:../x-y", "must be firefox:SOURCE-TARGET"),
        ("firefox:EN-DE", "in small letters"),
        ("en-de", "en-de: no such folder; did you mean firefox:en-de?"),
        ("firefix:en-de", "firefix:en-de: no such folder; did you mean firefox:en-de?"),
        ("opus-mt-en-de", "opus-mt-en-de: no such folder; did you mean Helsinki-NLP/opus-mt-en-de?"),
        ("./studnet", "./studnet: no such folder; did you mean student?"),
        ("student/vocab.spm", "student/vocab.spm: is a file; give its folder, student"),
        ("notes.txt", "notes.txt: is a file; a model is a folder$"),
    ],
)
def test_what_means_nothing(word: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "student").mkdir()
    (tmp_path / "student" / "vocab.spm").touch()
    (tmp_path / "notes.txt").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=said.replace("?", r"\?")):
        parse([word])


def test_the_current_folder_is_named_where_it_is_that_of_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "decoder.yml").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"decoder.yml: is a file; give its folder, \.$"):
        parse(["decoder.yml"])


def test_folders_are_not_alike_for_the_folder_that_they_lie_in(tmp_path: Path) -> None:
    (tmp_path / "opt").mkdir()
    assert meant(str(tmp_path / "nope")) == ""
    assert meant(str(tmp_path / "optt")) == f"; did you mean {tmp_path / 'opt'}?"
