"""Sentences whose language is known: what is counted as right, and the report of a run."""

import json
from pathlib import Path

import pytest

from bench import detection
from bench.detection import Row, Sentence, as_markdown, best, in_company, read
from service.text.detection import Guess, LanguageDetector

PAIRS = Path(__file__).parents[2] / "data" / "en-de.tsv"


def test_the_best_guess_is_the_first() -> None:
    assert best([Guess("de", 0.9), Guess("en", 0.1)]) == "de"
    assert best([]) == ""


def test_each_sentence_is_read_once_from_both_sides(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("Yes\tJa\nNo\tNein\n")
    (tmp_path / "b.tsv").write_text("Yes\tOui\n")
    files = [("en", "de", tmp_path / "a.tsv"), ("en", "fr", tmp_path / "b.tsv")]
    expected = [("Yes", "en"), ("No", "en"), ("Ja", "de"), ("Nein", "de"), ("Oui", "fr")]
    assert read(files, None) == expected
    assert len(read(files, 1)) == 3


def test_a_short_sentence_is_helped_by_its_company() -> None:
    sentences = [Sentence(f"Heute fährt der Zug um {hour} Uhr ab.", "de") for hour in range(20)]
    sentences += [Sentence(f"The train leaves at {hour} o'clock today.", "en") for hour in range(20)]
    [short, _] = in_company(LanguageDetector(), [*sentences, Sentence("Chat", "de")])
    assert short.sentences == 1
    assert short.right == {"alone": 0, "among its own language": 1, "among another language": 0}


def test_a_table_has_a_share_of_each_case() -> None:
    table = as_markdown([Row("de", 4, {"a": 1, "b": 4}), Row("en", 0, {"a": 0, "b": 0})], "language")
    assert table.splitlines() == [
        "| language | sentences | a | b |",
        "|---|---|---|---|",
        "| de | 4 | 25.0% | 100.0% |",
        "| en | 0 |  |  |",
    ]


def test_a_run_reports_what_it_prints(tmp_path: Path, capsys) -> None:
    out = tmp_path / "detection.json"
    assert detection.main(["--pairs", f"en-de={PAIRS}", "--sentences", "60", "--json", str(out)]) == 0
    report = json.loads(out.read_text())
    rows = report["language and characters"]
    assert sum(row["sentences"] for row in rows) == 120
    right = sum(row["right"]["these alone"] for row in rows)
    assert right > 0.95 * 120
    assert {"seconds", "longest_pause_ms", "mib"} == report["loading"].keys()
    assert "| language and characters | sentences |" in capsys.readouterr().out


@pytest.mark.parametrize("pairs", ["ende=x", "en-de", "en-de=/no/such/file"])
def test_a_bad_argument_is_one_line(pairs: str, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        detection.main(["--pairs", pairs])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
