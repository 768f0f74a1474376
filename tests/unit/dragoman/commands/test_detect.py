"""Lines in, languages out; the models of the folder say which count as more probable."""

import io
import json
import sys
from pathlib import Path

import pytest

from dragoman.cli import main

BUNDLE = f"--models={Path(__file__).parents[4] / 'models' / 'en-de' / 'bundle'}"


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch):
    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        monkeypatch.setattr(sys.stdin.buffer, "isatty", lambda: False, raising=False)

    return give


def test_a_line_has_its_language_and_the_confidence(capfd, lines) -> None:
    lines("Wo ist der Bahnhof?\n42\nWhere is the station?\n")
    assert main(["detect", BUNDLE]) == 0
    german, empty, english = capfd.readouterr().out.splitlines()
    assert german.split("\t")[0] == "de"
    assert 0.9 < float(german.split("\t")[1]) <= 1
    assert empty == ""
    assert english.startswith("en\t")


def test_json_has_several_languages_of_an_argument(capfd) -> None:
    assert main(["detect", BUNDLE, "--json", "Bahnhof", "7"]) == 0
    some, nothing = map(json.loads, capfd.readouterr().out.splitlines())
    assert some["text"] == "Bahnhof"
    assert len(some["languages"]) == 5
    assert some["languages"][0]["language"] == "de"
    assert nothing == {"text": "7", "languages": []}


def test_of_html_tags_are_not_looked_at(capfd) -> None:
    html = '<p title="the title of this station">Bahnhof und Flughafen</p>'
    for flags, language in (([], "en"), (["--html"], "de")):
        assert main(["detect", BUNDLE, *flags, html]) == 0
        assert capfd.readouterr().out.startswith(f"{language}\t")


def test_a_folder_without_a_bundle_is_one_line(capfd, tmp_path: Path) -> None:
    assert main(["detect", f"--models={tmp_path}", "Bahnhof"]) == 2
    assert "there is no bundle" in capfd.readouterr().err
