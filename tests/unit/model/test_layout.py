"""What a checkpoint says of itself, read without torch."""

import json
from pathlib import Path

import pytest

from dragoman.errors import DataError
from dragoman.language_marks import LanguageMarks, Languages
from model.layout import CONFIG, IMPORT, LANGUAGES, TRAINING, family, is_checkpoint, languages


def test_a_checkpoint_is_a_folder_with_a_configuration(tmp_path: Path) -> None:
    assert not is_checkpoint(tmp_path)
    (tmp_path / CONFIG).mkdir()
    assert not is_checkpoint(tmp_path)
    (tmp_path / CONFIG).rmdir()
    (tmp_path / CONFIG).write_text("{}")
    assert is_checkpoint(tmp_path)
    assert not is_checkpoint(tmp_path / "missing")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"source_language": "en", "target_language": "de-AT"}, Languages.pair("en", "de-AT")),
        ({"target_language": "de"}, None),
        ({"source_language": "", "target_language": ""}, None),
        ({}, None),
    ],
)
def test_the_languages_that_were_recorded(tmp_path: Path, options: dict[str, str], expected: Languages | None) -> None:
    (tmp_path / TRAINING).write_text(json.dumps({"options": options}))
    assert languages(tmp_path) == expected


def test_without_a_record_there_are_none(tmp_path: Path) -> None:
    assert languages(tmp_path) is None
    assert family(tmp_path) == "transformer"


def test_an_import_says_its_languages_and_family(tmp_path: Path) -> None:
    many = Languages(sources=("en", "de"), targets=("de", "en"), marks={"de": LanguageMarks(source_prefix=(7,))})
    (tmp_path / LANGUAGES).write_text(many.model_dump_json())
    (tmp_path / IMPORT).write_text('{"family": "m2m_100"}')
    assert languages(tmp_path) == many
    assert family(tmp_path) == "m2m_100"


@pytest.mark.parametrize("content", ["", "{", '{"sources": []}', '{"sources": ["en"], "targets": ["deu_Latn"]}'])
def test_broken_languages_are_named_with_their_file(tmp_path: Path, content: str) -> None:
    (tmp_path / LANGUAGES).write_text(content)
    with pytest.raises(DataError, match=r"languages\.json: "):
        languages(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}"])
def test_a_broken_record_of_an_import_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / IMPORT).write_text(content)
    with pytest.raises(DataError, match=r"import\.json: no record of an import"):
        family(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no record of a training"),
        ("[]", "no record of a training"),
        ('{"options": 3}', "no record of a training"),
        ('{"options": {"source_language": "English"}}', "BCP-47"),
        ('{"options": {"target_language": 7}}', "BCP-47"),
    ],
)
def test_a_broken_record_is_named_with_its_file(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / TRAINING).write_text(content)
    with pytest.raises(DataError, match=said) as caught:
        languages(tmp_path)
    assert str(tmp_path / TRAINING) in str(caught.value)
