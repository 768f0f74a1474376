"""What counts as kept in a translation."""

import re
from pathlib import Path

import pytest

from bench import kept
from bench.cli import main
from bench.kept import Sentence, kind_of, lost, read


@pytest.mark.parametrize(
    ("text", "translation", "is_kept"),
    [
        ("1,234.50", "Es sind 1.234,50 Meter.", True),
        ("1,234.50", "Es sind 1.234 Meter.", False),
        ("$84.50", "Es kostet 84,50 Dollar.", True),
        ("$84.50", "Es kostet 84,50 Euro.", False),
        ("52.52", "Die Koordinaten sind 52,52, 13,4.", True),
        ("-12", "Es sind minus 12 Grad.", True),
        ("-12", "Es sind 12 Grad.", False),
        ("8:00", "Um 8 Uhr.", True),
        ("14:30", "Um 14.30 Uhr.", True),
        ("14:30", "At 2:30 p.m.", True),
        ("14:30", "At 2:30 a.m.", False),
        ("12", "Es sind 112.", False),
        ("#48213", "Ihre Bestellung #48213", True),
        ("#48213", "Ihre Bestellung 48213", False),
        ("{name}", "Hallo {Name}", False),
    ],
)
def test_numbers_are_kept_in_german_writing_and_all_else_as_it_is(text: str, translation: str, is_kept: bool) -> None:
    assert (lost(Sentence("", [text]), translation) == []) is is_kept


def test_a_name_may_have_a_form_in_the_other_language(tmp_path: Path) -> None:
    data = tmp_path / "one.txt"
    data.write_text("We go to [Prague|Prag].\n", encoding="utf-8")
    [sentence] = read(data)
    assert sentence.text == "We go to Prague."
    assert [lost(sentence, f"Wir fahren nach {place}.") for place in ("Prag", "Prague", "Paris")] == [
        [],
        [],
        ["Prague|Prag"],
    ]


def test_what_is_named_twice_is_kept_twice() -> None:
    sentence = Sentence("", ["Tom", "Tom"])
    assert lost(sentence, "Tom sieht Tom.") == []
    assert lost(sentence, "Tom sieht ihn.") == ["Tom"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{count}", "placeholders"),
        ("%1$s", "placeholders"),
        ("a.b@example.org", "e-mail addresses"),
        ("www.example.net/help", "URLs"),
        ("1,500", "numbers"),
        ("v3.0.0-beta.2", "versions, codes"),
        ("Åsa", "names"),
        ("nginx", "other"),
    ],
)
def test_kinds(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_sentences_of_the_project_have_marks_and_none_twice(language: str) -> None:
    sentences = read(kept.DATA / f"kept.{language}.txt")
    assert len(sentences) >= 100
    assert all(sentence.kept and not re.search(r"[\[\]|]", sentence.text) for sentence in sentences)
    assert len({sentence.text for sentence in sentences}) == len(sentences)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no text in square brackets, to be kept"),
        (b"Tom is here.\n", "has no text in square brackets, to be kept"),
        (b"[Zo\xeb] is here.\n", "is not UTF-8"),
    ],
)
def test_data_without_anything_to_keep(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "few.txt"
    data.write_bytes(content)
    with pytest.raises(SystemExit) as stopped:
        main(["kept", "--data", str(data)])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == f"dragoman bench kept: argument --data: {data} {message}\n"


def test_a_table_of_the_default_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "few.txt"
    data.write_text("[Tom] is here.\nIt is [12] [{count}].\n", encoding="utf-8")
    assert main(["kept", "--data", str(data), "--lost"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| placeholders | 1 |")
    assert lines[6].startswith("| sentences that keep all | 2 |")
    assert ("| source | translation | lost |" in lines) is not lines[6].endswith("| 100.0% |")
