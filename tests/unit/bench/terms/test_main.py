"""The measurement of terms: wrong arguments are one line, and it runs to its end."""

import json
from pathlib import Path

import pytest

from bench.terms import __main__ as terms

REPOSITORY = Path(__file__).parents[4]
PAIRS = str(REPOSITORY / "tests" / "data" / "en-de.tsv")
FILES = ["--train", PAIRS, "--data", PAIRS]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--train", PAIRS, "--data", "missing.tsv"], "argument --data: no file missing.tsv"),
        ([*FILES, "--beam-sizes", "4,1"], "argument --beam-sizes: a constrained search has at least 2 hypotheses"),
        ([*FILES, "--slots", "7"], "argument --slots: a beam of 8 hypotheses takes as many slots, not 7"),
        ([*FILES, "--terms", "0"], "argument --terms: must be at least 1, not 0"),
    ],
)
def test_a_wrong_argument_is_one_line(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        terms.main(arguments)
    assert exit_.value.code == 2
    assert capsys.readouterr().err.splitlines() == [f"python -m bench.terms: {message}"]


def test_it_runs_to_its_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out, bundle = tmp_path / "terms.json", str(REPOSITORY / "models" / "en-de" / "bundle")
    command = [*FILES, "--bundle", bundle, "--terms", "1", "--beam-sizes", "4", "--rounds", "1", "--json", str(out)]
    assert terms.main([*command, "--sentences", "12"]) == 0
    greedy, beam, constrained, glossary, *unfit = json.loads(out.read_text())["found"]
    assert (greedy["way"], greedy["with_all"], beam["way"]) == ("greedy", 0, "beam 4")
    assert (constrained["sentences"], constrained["with_all"], constrained["unmet"]) == (12, 12, 0)
    assert (glossary["way"], glossary["with_all"] + glossary["unmet"]) == ("glossary, beam 4", 12)
    assert [(each["way"], each["fits"]) for each in unfit] == [
        (each["way"], False) for each in (greedy, beam, constrained, glossary)
    ]
    assert unfit[-1]["with_all"] + unfit[-1]["unmet"] == unfit[-1]["sentences"] > 0
    assert "constrained beam 4" in capfd.readouterr().out
