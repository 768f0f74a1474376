"""Tags around words whose translation is known: which words those are, and when tags are right."""

import json
from pathlib import Path

import numpy as np
import pytest

from bench.cli import main
from bench.tags import Case, lexicon, links, rows
from plugins.alignment.alignment import Alignment
from service.text.alignment import Side
from tests.server_process import BUNDLE

PAIRS = Path(__file__).parents[2] / "data" / "en-de.tsv"


def test_words_of_the_lexicon_are_nearly_always_in_both_sides() -> None:
    sources = ["the dog"] * 9 + ["a dog"] + ["the cat"] * 5
    targets = ["der Hund"] * 9 + ["ein Hund"] + ["die Katze"] * 5
    assert lexicon(sources, targets) == {"dog": "Hund"}  # the is der in 9 of 14, a cat is too rare


@pytest.mark.parametrize(
    ("target", "right"),
    [("Hund", True), ("Der Hund", False), ("Der", False)],
)
def test_tags_are_right_exactly_around_the_word(target: str, right: bool) -> None:
    source, translation = "The dog!", "Der Hund!"
    span = (translation.index(target), translation.index(target) + len(target))
    alignment = Alignment(np.eye(1, dtype=np.float32), Side(source, [(4, 7)]), Side(translation, [span]))
    case = Case(source, translation, alignment, (4, 7), (4, 8), moved=False)
    assert case.is_right(alignment) is right


def test_cases_are_counted_by_kind() -> None:
    plain = Case("I see Tom", "Tom seh ich", None, (6, 9), (0, 3), moved=True)
    other = Case("a dog", "ein Hund", None, (2, 5), (4, 8), moved=False)
    found = {row["cases"]: row for row in rows([plain, other])}
    assert {name: row["of"] for name, row in found.items()} == {
        "all": 2,
        "the word moved": 1,
        "it did not": 1,
        "the word is another in the translation": 1,
        "it is the same": 1,
    }
    seh = Alignment(np.eye(1, dtype=np.float32), Side(plain.source, [(6, 9)]), Side(plain.translation, [(4, 7)]))
    wrong = plain._replace(alignment=seh)
    assert list(rows([plain, wrong])[0].values()) == ["all", 2, "100.0%", "50.0%"]
    assert list(rows([])[0].values()) == ["all", 0, "", ""]


def test_real_sentences_have_more_right_tags_by_the_alignment(tmp_path: Path) -> None:
    out = tmp_path / "tags.json"
    command = ["--train", str(PAIRS), "--data", str(PAIRS), "--sentences", "120", "--bundle", str(BUNDLE)]
    assert main(["tags", *command, "--json", str(out)]) == 0
    report = json.loads(out.read_text())
    found = report["rows"][0]
    guessed, aligned = (float(found[f"right by the {way}"].removesuffix("%")) for way in ("guess", "alignment"))
    assert 100 >= aligned > guessed > 0
    assert found["of"] >= report["words with their alignment"] > found["of"] / 2


def test_alignments_of_both_words_are_counted() -> None:
    source, translation = Side("a dog", [(0, 1), (2, 5)]), Side("ein Hund", [(0, 3), (4, 8)])
    aligned = Alignment(np.array([[1, 1.2], [0, 1]], np.float32), source, translation)
    case = Case(source.text, translation.text, aligned, (2, 5), (4, 8), moved=False)
    assert links([case, case._replace(alignment=None)]) == (1, 2)
