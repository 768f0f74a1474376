"""Stored glossaries follow their folder; a wrong file leaves what was read of it before."""

from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from dragoman.bundle import Manifest
from dragoman.errors import InvalidRequestError, UnknownGlossaryError
from dragoman.language_marks import Languages
from dragoman.v1 import translation_pb2 as pb
from plugins.terms.glossaries import StoredGlossaries, StoredGlossary
from plugins.terms.terms import Terms
from service.registry.catalog import Choice, ServedModel
from service.settings import SettingsError


def forms(glossaries: StoredGlossaries, name: str, text: str) -> list[tuple[str, ...]]:
    return [match.forms for match in Terms([glossaries.find(name).terms]).find(text)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "products.en-de.csv").write_text("house,Haus\n")
    (tmp_path / ".hidden.csv").write_text("a,b\n")
    (tmp_path / "notes.txt").write_text("no glossary")
    return tmp_path


def test_the_files_of_a_folder_are_listed_by_name(folder: Path) -> None:
    (folder / "names.tsv").write_text("Tom\n")
    glossaries = StoredGlossaries(str(folder))
    glossaries.refresh()
    listed = [each[:4] for each in glossaries]
    assert listed == [("names", "", "", 1), ("products.en-de", "en", "de", 1)]


def test_only_a_server_logs_what_it_reads(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    with capture_logs() as log:
        StoredGlossaries(str(folder)).refresh()
    assert [each["event"] for each in log] == ["glossary read"]
    monkeypatch.setattr(structlog, "is_configured", lambda: False)
    StoredGlossaries(str(folder)).refresh()
    assert capfd.readouterr() == ("", "")


def test_an_unknown_one_is_an_error_that_names_those_that_there_are(folder: Path) -> None:
    (folder / "names.tsv").write_text("Tom\n")
    glossaries = StoredGlossaries(str(folder))
    glossaries.refresh()
    with pytest.raises(UnknownGlossaryError) as caught:
        glossaries.find("products")
    assert caught.value.message == "no glossary 'products'; there are: names, products.en-de"
    assert caught.value.metadata == {"glossary": "products"}
    for number in range(9):
        (folder / f"{number}.csv").write_text("Tom\n")
    glossaries.refresh()
    with pytest.raises(UnknownGlossaryError, match=r"; there are: 0, 1, 2, 3, 4, 5, 6, 7, \.\.\.$"):
        glossaries.find("p" * 1000)
    with pytest.raises(UnknownGlossaryError, match="there are: none"):
        StoredGlossaries().find("products")


def test_files_that_are_new_changed_or_gone_are_followed(folder: Path) -> None:
    glossaries = StoredGlossaries(str(folder))
    glossaries.refresh()
    (folder / "products.en-de.csv").write_text("house,Gebäude\nhome,Heim\n")
    (folder / "names.csv").write_text("Tom\n")
    glossaries.refresh()
    assert forms(glossaries, "products.en-de", "a house") == [("Gebäude",)]
    assert len(list(glossaries)) == 2
    (folder / "names.csv").unlink()
    glossaries.refresh()
    assert [each.name for each in glossaries] == ["products.en-de"]


def test_a_wrong_file_leaves_what_was_read_before_and_hurts_no_other(folder: Path) -> None:
    glossaries = StoredGlossaries(str(folder))
    glossaries.refresh()
    (folder / "products.en-de.csv").write_bytes(b"\xff\xff")
    (folder / "others.csv").write_text("a\n,x\n")
    (folder / "names.csv").write_text("Tom\n")
    with capture_logs() as logs:
        assert [glossaries.refresh() for _ in range(2)] == [2, 2]  # told of once
    errors = [line for line in logs if line["log_level"] == "error"]
    refused = [line["why"] for line in errors]
    assert [line["event"] for line in errors] == [
        "a glossary was refused",
        "a glossary was refused: what was read of it before stays",
    ]
    assert "others.csv: line 2" in refused[0]
    assert "products.en-de.csv: must be UTF-8" in refused[1]
    assert forms(glossaries, "products.en-de", "a house") == [("Haus",)]
    assert [each.name for each in glossaries] == ["names", "products.en-de"]
    (folder / "products.en-de.csv").write_text("house,Heim\n")
    assert glossaries.refresh(everything=True) == 1
    assert forms(glossaries, "products.en-de", "a house") == [("Heim",)]
    (folder / "others.csv").unlink()
    assert glossaries.refresh() == 0


def test_of_two_files_with_one_name_the_second_is_refused(folder: Path) -> None:
    glossaries = StoredGlossaries(str(folder))
    glossaries.refresh()
    (folder / "products.en-de.tsv").write_text("house\tHeim\n")
    glossaries.refresh()
    assert forms(glossaries, "products.en-de", "a house") == [("Haus",)]


@pytest.mark.parametrize("content", [b"house,Haus\n", b"\xff"])
def test_a_file_that_was_refused_for_its_name_is_read_once_the_other_is_gone(folder: Path, content: bytes) -> None:
    (folder / "products.en-de.csv").write_bytes(content)
    (folder / "products.en-de.tsv").write_text("house\tHeim\n")
    glossaries = StoredGlossaries(str(folder))
    glossaries.refresh()
    (folder / "products.en-de.csv").unlink()
    glossaries.refresh()
    assert forms(glossaries, "products.en-de", "a house") == [("Heim",)]


def test_a_folder_that_is_not_there_ends_a_start_but_no_reload(folder: Path) -> None:
    glossaries = StoredGlossaries(str(folder))
    glossaries.refresh()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    glossaries.refresh()
    assert [each.name for each in glossaries] == ["products.en-de"]
    with pytest.raises(SettingsError, match="no such folder"):
        StoredGlossaries(str(folder))


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        ("en", "de", True),
        ("", "", True),
        ("en-US", "de-AT", True),
        ("EN", "", True),
        ("fr", "de", False),
        ("en", "fr", False),
    ],
)
def test_a_glossary_is_for_its_languages_and_their_variants(
    manifest: Manifest, source: str, target: str, *, fits: bool
) -> None:
    stored = StoredGlossary("a", source, target, 0, Terms([]))  # type: ignore[arg-type]
    assert (stored.misfit(manifest, "", "") == "") == fits
    many = manifest.model_copy(update={"languages": Languages(sources=("en", "fr"), targets=("de", "es"))})
    assert (stored.misfit(many, "en", "de") == "") == fits


def test_with_detection_a_glossary_is_for_the_texts_of_its_languages(folder: Path, manifest: Manifest) -> None:
    (folder / "products.de-en.csv").write_text("Haus,house\n")
    (folder / "products.fr-de.csv").write_text("maison,Haus\n")
    (folder / "names.csv").write_text("Tom\n")
    glossaries = StoredGlossaries(str(folder))
    glossaries.refresh()
    back = manifest.model_copy(update={"languages": Languages(sources=("de",), targets=("en",))})
    both = [Choice(ServedModel(manifest, 1), "en", "de"), Choice(ServedModel(back, 1), "de", "en")]

    def found(choice: Choice, others: list[Choice], *names: str) -> list[str]:
        options = pb.TranslateOptions(glossary=pb.Glossary(names=names))
        terms = glossaries.terms_of(options, choice, "", others)
        return [form for match in terms.find("Tom house Haus") for form in match.forms] if terms else []

    names = ["products.en-de", "products.de-en", "names"]
    assert [found(each, both, *names) for each in both] == [["Tom", "Haus"], ["Tom", "house"]]
    assert [found(each, both, "products.de-en") for each in both] == [[], ["house"]]
    pivoted = both[0]._replace(source="fr", pivot=both[0])
    for others in ([], both[:1], [both[0], pivoted]):
        with pytest.raises(
            InvalidRequestError, match=r"names\[1\]: must be for en to de, 'products.de-en' is for de to en"
        ):
            found(both[0], others, *names)
    with pytest.raises(
        InvalidRequestError, match=r"names\[0\]: must be for en to de, 'products.fr-de' is for fr to de"
    ):
        found(both[0], both, "products.fr-de")
