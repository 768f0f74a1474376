import json
from pathlib import Path

import pytest

from dragoman.answers import Translation
from dragoman.errors import InvalidRequestError
from plugins.bulk.columns import Columns
from plugins.bulk.plan import planned
from plugins.bulk.worker import Done, Worker

COLUMNS = Columns("id", "text")
ROWS = [{"id": 0, "text": "a"}, {"id": 1, "text": " "}, {"id": 2}, {"id": 3, "text": "bad"}, {"id": 4, "text": "b"}]


def upper(texts: list[str]) -> list[Translation]:
    """Stands for a model."""
    error = InvalidRequestError("contents[1]: has\n3 letters", violations=[("contents[1]", "has\n3 letters")])
    return [
        Translation("", "m", 0, 0, "UNSPECIFIED", 0, error=error)
        if text == "bad"
        else Translation(text.upper(), "m", 1, 1, "LENGTH", 1, unknown_pieces=2, split=True)
        for text in texts
    ]


def write(folder: Path, rows: list[dict[str, object]]) -> Path:
    file = folder / "in.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_a_row_that_fails_has_its_error_and_the_others_their_translations(tmp_path: Path) -> None:
    [chunk] = planned([write(tmp_path, ROWS)], COLUMNS, 10)
    assert Worker(upper, tmp_path, COLUMNS, "abc")(chunk) == Done(5, 3)
    made = [json.loads(line) for line in chunk.part(tmp_path).read_text().splitlines()]
    assert [row["id"] for row in made] == [0, 1, 2, 3, 4]
    assert [row["translation"] for row in made] == ["A", None, None, None, "B"]
    assert [row["error"] for row in made] == [None, "is empty", "must be a string, is null", "has 3 letters", None]
    assert {row["model_sha256"] for row in made} == {"abc"}
    assert [made[0][name] for name in ("finish_reason", "split", "unknown_pieces")] == ["LENGTH", True, 2]


def test_without_a_good_text_the_model_is_not_asked(tmp_path: Path) -> None:
    [chunk] = planned([write(tmp_path, [{"id": 1, "text": ""}])], COLUMNS, 10)

    def fails(texts: list[str]) -> list[Translation]:
        raise AssertionError(texts)

    assert Worker(fails, tmp_path, COLUMNS, "abc")(chunk) == Done(1, 1)


def test_a_part_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    [chunk] = planned([write(tmp_path, ROWS)], COLUMNS, 10)

    def fails(texts: list[str]) -> list[Translation]:
        raise InvalidRequestError("no")

    with pytest.raises(InvalidRequestError):
        Worker(fails, tmp_path, COLUMNS, "abc")(chunk)
    assert {path.name for path in tmp_path.iterdir()} == {"in.jsonl"}
