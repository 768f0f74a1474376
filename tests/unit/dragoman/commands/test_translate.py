import dataclasses
import io
import json
import re
import sys
from itertools import cycle, islice
from pathlib import Path
from typing import Any, ClassVar

import pytest
import structlog
from tqdm import tqdm

from dragoman.answers import Alternative, SegmentQuality, Translation, WordAlignment
from dragoman.cli import main
from dragoman.commands import lines, translate
from dragoman.errors import InternalError

BUNDLE = str(Path(__file__).parents[4] / "models" / "en-de" / "bundle")


class Bar(tqdm):  # type: ignore[type-arg]
    """A progress bar that is shown from the start."""

    made: ClassVar[list["Bar"]] = []

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"delay": 0, "disable": False, "file": io.StringIO()})
        self.shown_total, self.shown_unit = options["total"], options["unit"]
        Bar.made.append(self)


MORNING = Translation(
    "Guten Morgen.",
    "en-de",
    3,
    3,
    "EOS",
    1,
    alternatives=(
        Alternative("Guten Morgen.", -0.25, -0.25, "EOS"),
        Alternative("Guten Tag!", -1.5, -1.25, "LENGTH"),
    ),
)
FAILED = Translation("", "en-de", 0, 0, "UNSPECIFIED", 0, error=InternalError("broken"))


def translations_of(monkeypatch, *translations: Translation) -> dict[str, Any]:
    """Has the command print these, one for each line; gives the options and the lines that it asks them with."""
    asked: dict[str, Any] = {}

    def translator(folder: Path | None, **options: Any) -> translate.TranslateLines:
        def translations_of_lines(lines: list[str]) -> list[Translation]:
            asked.update(lines=lines)
            return list(islice(cycle(translations), len(lines)))

        asked.update(options)
        return translations_of_lines

    monkeypatch.setattr(translate, "load", lambda _: translator)
    return asked


@pytest.mark.parametrize("content", ["Good morning.\nGood night.\nGood morning.\n", "Good morning.\n\nGood night."])
def test_progress_counts_lines(content: str, tmp_path: Path, monkeypatch, capfd) -> None:
    (tmp_path / "lines").write_text(content)
    translations_of(monkeypatch, MORNING)
    monkeypatch.setattr(lines, "tqdm", Bar)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with (tmp_path / "lines").open("rb") as stream:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        assert main(["translate"]) == 0
        sys.stdin.detach()
    bar = Bar.made.pop()
    assert (bar.shown_total, bar.shown_unit, bar.n) == (3, "line", 3)
    assert capfd.readouterr().out.count("\n") == 3


def test_json_of_an_argument_that_is_not_utf8(capfd) -> None:
    assert main(["translate", "--models", BUNDLE, "--json", "caf\udce9"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["text"] == "caf\ufffd"
    assert err == "dragoman translate: text 1 is not UTF-8; U+FFFD stands for bad bytes\n"


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("in.txt", "--file in.txt --out OUT.txt"),
        ("my letter.DOCX", "--file 'my letter.DOCX' --out OUT.DOCX"),
        ("in", "< in"),
    ],
)
def test_the_name_of_a_file_is_translated_and_a_line_says_how_the_file_is(
    name: str, how: str, tmp_path: Path, monkeypatch, capfd
) -> None:
    asked = translations_of(monkeypatch, MORNING)
    monkeypatch.chdir(tmp_path)
    assert main(["translate", name]) == 0
    assert capfd.readouterr().err == ""
    Path(name).write_text("Good morning.")
    assert main(["translate", name]) == 0
    assert asked["lines"] == [name]
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert err.endswith(f" is a file, and is taken as a text; to translate the file: dragoman translate {how}\n")
    assert main(["translate", name, "x" * 5000]) == 0
    assert main(["translate", "x" * 5000]) == 0
    assert capfd.readouterr().err == ""


def test_alternatives_are_written_a_line_each_with_the_number_of_their_text(monkeypatch, capfd) -> None:
    asked = translations_of(monkeypatch, MORNING, FAILED, MORNING)
    arguments = ["--beam-size=4", "--length-penalty=0.5", "--alternatives=2"]
    assert main(["translate", *arguments, "a", "b", "c"]) == 1
    best, second = "-0.250000\tGuten Morgen.", "-1.500000\tGuten Tag!"
    assert capfd.readouterr().out.splitlines() == [f"1\t{best}", f"1\t{second}", "2\t\t", f"3\t{best}", f"3\t{second}"]
    assert (asked["beam_size"], asked["length_penalty"], asked["alternatives"]) == (4, 0.5, 2)


def test_a_tab_in_an_alternative_begins_no_column(monkeypatch, capfd) -> None:
    alternative = Alternative("Guten\tTag!", -1.5, -1.25, "EOS")
    translations_of(monkeypatch, dataclasses.replace(MORNING, alternatives=(alternative,)))
    assert main(["translate", "--alternatives=1", "Good\tmorning!"]) == 0
    assert capfd.readouterr().out == "1\t-1.500000\tGuten Tag!\n"


def test_json_has_alternatives_where_they_are_asked_for(monkeypatch, capfd) -> None:
    translations_of(monkeypatch, MORNING, FAILED)
    assert main(["translate", "--json", "--alternatives=2", "a", "b"]) == 1
    morning, failed = map(json.loads, capfd.readouterr().out.splitlines())
    assert (morning["translation"], failed["alternatives"]) == ("Guten Morgen.", [])
    assert morning["alternatives"][1] == {
        "translation": "Guten Tag!",
        "score": -1.5,
        "mean_log_probability": -1.25,
        "finish_reason": "LENGTH",
    }
    asked = translations_of(monkeypatch, MORNING)
    assert main(["translate", "--json", "a"]) == 0
    assert "alternatives" not in json.loads(capfd.readouterr().out)
    assert (asked["beam_size"], asked["length_penalty"], asked["alternatives"]) == (None, None, None)


ALIGNED = Translation(
    "Guten Morgen.",
    "en-de",
    3,
    3,
    "EOS",
    1,
    alignments=(WordAlignment(0, 4, 0, 5, 1.0), WordAlignment(5, 12, 6, 12, 0.874)),
)


def test_alignments_are_written_a_line_each_with_the_number_of_their_text(monkeypatch, capfd) -> None:
    asked = translations_of(monkeypatch, ALIGNED, FAILED)
    assert main(["translate", "--alignments", "Good morning!", "b"]) == 1
    lines = ["1\tGood\tGuten\t1.00", "1\tmorning\tMorgen\t0.87", "2\t\t"]
    assert (capfd.readouterr().out.splitlines(), asked["alignments"]) == (lines, True)
    asked = translations_of(monkeypatch, ALIGNED)
    assert main(["translate", "--alignments", "--json", "--alternatives=1", "Good morning!"]) == 0
    described = json.loads(capfd.readouterr().out)
    assert described["alignments"][1] == {
        "source_start": 5,
        "source_end": 12,
        "target_start": 6,
        "target_end": 12,
        "weight": 0.874,
    }


def test_quality_estimates_are_written_as_json(monkeypatch, capfd) -> None:
    good = dataclasses.replace(ALIGNED, quality_estimate=0.75, segment_qualities=(SegmentQuality(0, 13, 0.75),))
    asked = translations_of(monkeypatch, good)
    assert main(["translate", "--quality-estimate", "--json", "Good morning!"]) == 0
    described = json.loads(capfd.readouterr().out)
    assert (described["quality_estimate"], asked["quality_estimate"]) == (0.75, True)
    assert described["segment_qualities"] == [{"target_start": 0, "target_end": 13, "quality_estimate": 0.75}]
    with pytest.raises(SystemExit):
        main(["translate", "--quality-estimate", "a"])
    assert "argument --quality-estimate: it needs --json" in capfd.readouterr().err


@pytest.mark.parametrize("other", ["--html", "--alternatives=2"])
def test_what_does_not_go_with_alignments_is_one_line(other: str, capfd) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["translate", "--alignments", other, "a"])
    assert ended.value.code == 2
    error = capfd.readouterr().err
    assert (error.count("\n"), "--alignments" in error) == (1, True)


def test_the_help_says_what_decides_without_a_source_language(capfd) -> None:
    with pytest.raises(SystemExit):
        main(["translate", "--help"])
    shown = " ".join(capfd.readouterr().out.split())
    assert "without it, --to or --model decides: the only model that fits translates, and nothing is detected" in shown


@pytest.mark.parametrize("argument", ["--beam-size=0", "--alternatives=-1", "--length-penalty=long", "--seed=-1"])
def test_an_impossible_beam_is_one_line(argument: str, capfd) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["translate", argument, "a"])
    assert ended.value.code == 2
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("draws", ["--temperature=2", "--top-k=0", "--top-p=1"])
def test_the_seed_of_draws_without_one_is_told(draws: str, monkeypatch, capfd) -> None:
    asked = translations_of(monkeypatch, MORNING)
    assert main(["translate", draws, "Good morning."]) == 0
    first, note = capfd.readouterr()
    told = re.fullmatch(r"dragoman translate: (--seed (\d+)) draws the same again\n", note)
    assert told is not None
    assert asked["seed"] == int(told[2])
    assert main(["translate", draws, *told[1].split(), "Good morning."]) == 0
    assert asked["seed"] == int(told[2])
    assert capfd.readouterr() == (first, "")


def test_json_tells_a_drawn_seed_itself(monkeypatch, capfd) -> None:
    asked = translations_of(monkeypatch, MORNING)
    assert main(["translate", "--json", "--top-k=3", "a"]) == 0
    assert 0 <= asked["seed"] < 2**32
    assert capfd.readouterr().err == ""


def test_draws_are_asked_for_as_they_are_given_and_json_tells_the_seed(monkeypatch, capfd) -> None:
    asked = translations_of(monkeypatch, dataclasses.replace(MORNING, seed=0))
    arguments = ["--json", "--temperature=0.5", "--top-k=0", "--top-p=0.75", "--seed=0"]
    assert main(["translate", *arguments, "a"]) == 0
    assert json.loads(capfd.readouterr().out)["seed"] == 0
    assert (asked["temperature"], asked["top_k"], asked["top_p"], asked["seed"]) == (0.5, 0, 0.75, 0)
    asked = translations_of(monkeypatch, MORNING)
    assert main(["translate", "--json", "a"]) == 0
    assert "seed" not in json.loads(capfd.readouterr().out)
    assert (asked["temperature"], asked["top_k"], asked["top_p"], asked["seed"]) == (None, None, None, None)


@pytest.mark.parametrize(
    ("name", "content", "flags", "asked"),
    [
        ("terms.csv", "house,Haus\n", [], ("", "")),
        ("terms.csv", "house,Haus\n", ["--to=fr"], ("", "fr")),
        ("terms.en-de.csv", "house,Haus\n", [], ("en", "de")),
        ("terms.csv", "en,de\nhouse,Haus\n", ["--to=de"], ("en", "de")),
        ("terms.csv", "en,de\nhouse,Haus\n", ["--from=en-US"], ("en-US", "de")),
        ("terms.en-US-de.csv", "house,Haus\n", ["--from=en"], ("en", "de")),
    ],
)
def test_the_languages_of_a_glossary_are_those_of_the_call(
    name: str, content: str, flags: list[str], asked: tuple[str, str], tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / name).write_text(content)
    options = translations_of(monkeypatch, MORNING)
    assert main(["translate", "--glossary", str(tmp_path / name), *flags, "a"]) == 0
    assert (options["source"], options["target"]) == asked
    assert [term.source_term for term in options["glossary"]] == ["house"]


@pytest.mark.parametrize("content", ["", "en,de\n"])
def test_a_glossary_without_terms_is_refused(content: str, tmp_path: Path, monkeypatch, capfd) -> None:
    file = tmp_path / "terms.csv"
    file.write_text(content)
    translations_of(monkeypatch, MORNING)
    assert main(["translate", "--glossary", str(file), "a"]) == 2
    assert capfd.readouterr() == ("", f"dragoman translate: {file}: holds no terms\n")


def test_a_file_with_another_ending_is_no_name_of_a_glossary(tmp_path: Path, capfd) -> None:
    (tmp_path / "terms.txt").write_text("house\tHaus\n")
    assert main(["translate", "--glossary", str(tmp_path / "terms.txt"), "a"]) == 2
    assert "terms.txt: must end with .csv, .tsv, .tmx" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--from=en", "--to=de"], "is for fr to de, --from and --to say en to de"),
        (["--to=en"], "is for fr to de, --from and --to say any to en"),
        (["--from=auto"], "is for fr to de, --from and --to say auto to any"),
        (["--to=de"], "is for fr to de; no model translates from fr to de; there are: en-de (en to de)"),
        (["--model=en-de"], "is for fr to de; no model translates from fr to de; there are: en-de (en to de)"),
    ],
)
def test_a_glossary_for_other_languages_is_refused(flags: list[str], why: str, tmp_path: Path, capfd) -> None:
    file = tmp_path / "terms.fr-de.csv"
    file.write_text("house,Bude\n")
    assert main(["translate", "--models", BUNDLE, "--glossary", str(file), *flags, "The house is big."]) == 2
    assert capfd.readouterr() == ("", f"dragoman translate: {file}: {why}\n")


def test_several_glossaries_are_taken_together(tmp_path: Path, monkeypatch, capfd) -> None:
    (tmp_path / "a.en-de.csv").write_text("house,Haus\n")
    (tmp_path / "b.csv").write_text("station,Bahnhof\n")
    files = [f"--glossary={tmp_path / name}" for name in ("a.en-de.csv", "b.csv")]
    options = translations_of(monkeypatch, MORNING)
    assert main(["translate", *files, "--glossary=names", "--glossary", "more", "a"]) == 0
    assert [term.source_term for term in options["glossary"]] == ["house", "station"]
    assert (options["glossaries"], options["source"], options["target"]) == (["names", "more"], "en", "de")
    (tmp_path / "c.en-fr.csv").write_text("house,maison\n")
    assert main(["translate", *files, f"--glossary={tmp_path / 'c.en-fr.csv'}", "a"]) == 2
    said = "is for en to fr, --from, --to and the glossaries before say en to de"
    assert capfd.readouterr().err == f"dragoman translate: {tmp_path / 'c.en-fr.csv'}: {said}\n"


@pytest.mark.parametrize("text", ["a\nb", "a\r"])
def test_alternatives_of_what_is_no_line_need_json(text: str, monkeypatch, capfd) -> None:
    translations_of(monkeypatch, MORNING)
    with pytest.raises(SystemExit) as ended:
        main(["translate", "--alternatives=2", "a", text])
    assert ended.value.code == 2
    said = "argument --alternatives: a text with a line break needs --json"
    assert capfd.readouterr() == ("", f"dragoman translate: {said}\n")
    assert main(["translate", "--alternatives=2", "--json", text]) == 0


def test_a_glossary_that_does_not_fit_the_call_is_named_by_its_flag(tmp_path: Path, monkeypatch, capfd) -> None:
    structlog.reset_defaults()  # a command has no log, but a server that another test started in this process has
    (tmp_path / "terms.de-en.csv").write_text("Haus,house\n")
    (tmp_path / "many.csv").write_text("".join(f"term{number},x\n" for number in range(1_001)))
    monkeypatch.setenv("DRAGOMAN_GLOSSARIES", str(tmp_path))
    call = ["translate", "--models", BUNDLE, "--from=en", "--to=de", "The house."]
    assert main([*call, "--glossary=terms.de-en"]) == 2
    said = "--glossary: must be for en to de, 'terms.de-en' is for de to en"
    assert capfd.readouterr() == ("", f"dragoman translate: {said}\n")
    assert main([*call, "--glossary", str(tmp_path / "many.csv")]) == 2
    assert capfd.readouterr() == ("", "dragoman translate: --glossary: must hold at most 1000 terms, holds 1001\n")
    (tmp_path / "one.csv").write_text("house,Haus\n")
    files = [f"--glossary={tmp_path / name}" for name in ("many.csv", "one.csv")]
    assert main([*call, *files]) == 2
    said = "--glossary: must hold at most 1000 terms, all files together, holds 1002"
    assert capfd.readouterr() == ("", f"dragoman translate: {said}\n")
