"""Lines of pairs in, scores out."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.answers import Score, TokenScore
from dragoman.cli import main
from dragoman.commands import score
from dragoman.errors import FieldViolation, InvalidRequestError

MORNING = Score("en-de", -1.0, -0.25, (TokenScore("▁Guten", -0.75), TokenScore("</s>", -0.25)), 3, 1)
LONG = InvalidRequestError("x", violations=[FieldViolation("pairs[0].target_text", "must be at most 9 tokens")])


def scored(
    monkeypatch: pytest.MonkeyPatch, text: bytes, *scores: Score
) -> tuple[list[list[score.Pair]], dict[str, Any]]:
    """Has the command find these; gives the pairs that it asks for, and the options."""
    asked: list[list[score.Pair]] = []
    given: dict[str, Any] = {}

    def scorer(folder: Path | None, **options: Any) -> score.ScorePairs:
        given.update(options)
        return lambda pairs: asked.append(pairs) or list(scores)

    monkeypatch.setattr(score, "load", lambda _: scorer)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    monkeypatch.setattr(sys.stdin.buffer, "isatty", lambda: False, raising=False)
    return asked, given


def test_a_line_has_the_mean_of_its_pair(monkeypatch, capfd) -> None:
    asked, given = scored(monkeypatch, b"Good morning.\tGuten Morgen.\na\tb\n", MORNING, MORNING)
    assert main(["score", "--model=en-de", "--to=de"]) == 0
    assert capfd.readouterr() == ("-0.250000\n-0.250000\n", "")
    assert asked == [[("Good morning.", "Guten Morgen."), ("a", "b")]]
    assert given == {"model": "en-de", "source": "", "target": "de"}


def test_a_line_that_cannot_be_scored_is_empty_and_named(monkeypatch, capfd) -> None:
    failed = score.failed("en-de", LONG)
    asked, _ = scored(monkeypatch, b"no tab\na\tb\nc\td\te\nf\tg\n", failed, MORNING)
    assert main(["score"]) == 1
    out, err = capfd.readouterr()
    assert out == "\n\n\n-0.250000\n"
    assert err.splitlines() == [
        "dragoman score: line 1: must be a text, a tab and its translation, has 0 tabs",
        "dragoman score: line 2: the translation must be at most 9 tokens",
        "dragoman score: line 3: must be a text, a tab and its translation, has 2 tabs",
    ]
    assert asked == [[("a", "b"), ("f", "g")]]


def test_lines_without_a_pair_ask_for_no_score(monkeypatch, capfd) -> None:
    asked, _ = scored(monkeypatch, b"no tab\n")
    assert main(["score"]) == 1
    assert asked == []


def test_json_has_each_token(monkeypatch, capfd) -> None:
    scored(monkeypatch, b"Good morning.\tGuten Morgen.\na\tb\n", MORNING, score.failed("en-de", LONG))
    assert main(["score", "--json"]) == 1
    morning, failed = map(json.loads, capfd.readouterr().out.splitlines())
    assert morning == {
        "text": "Good morning.",
        "translation": "Guten Morgen.",
        "mean_log_probability": -0.25,
        "log_probability": -1.0,
        "tokens": [
            {"piece": "▁Guten", "log_probability": -0.75},
            {"piece": "</s>", "log_probability": -0.25},
        ],
        "source_tokens": 3,
        "target_tokens": 1,
        "model": "en-de",
        "error": None,
    }
    assert failed["mean_log_probability"] is None
    assert failed["error"] == {"reason": "INVALID_REQUEST", "message": "the translation must be at most 9 tokens"}
