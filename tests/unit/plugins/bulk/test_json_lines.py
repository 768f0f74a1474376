import json
from pathlib import Path

import pytest

from dragoman.errors import DataError
from tests.unit.plugins.bulk.rows_of_a_test import BAD, GOOD, scan, texts, written


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "in.jsonl"


def test_each_run_of_rows_is_read_as_it_stands(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbf{"id": 1, "text": "\xc3\xbc"}\n\n{"id": "b", "text": "B"}\r\n{"id": 3}')
    rows = scan(file)
    assert [row.id for row in rows] == ["1", "b", "3"]
    assert texts(file, rows) == ["ü", "B", None]
    assert [texts(file, [row]) for row in rows] == [["ü"], ["B"], [None]]
    assert rows[-1].end == file.stat().st_size


def test_all_that_a_row_has_stays(file: Path) -> None:
    file.write_text('{"id": 12345678901234567890, "text": "ü", "x": {"y": [1.5, null]}}\n{"text": "", "id": "b"}\n')
    lines = written(file, scan(file), GOOD, BAD).splitlines()
    assert "ü".encode() in lines[0]
    assert [json.loads(line) for line in lines] == [
        {"id": 12345678901234567890, "text": "ü", "x": {"y": [1.5, None]}, **GOOD._asdict()},
        {"text": "", "id": "b", **BAD._asdict()},
    ]


def test_numbers_and_blanks_stay_as_they_are_written(file: Path) -> None:
    row = '{ "id":1,"x":1e400,"y":0.1000000000000000055511151231257827,"z":%s, "text":"\\u0041" }' % ("9" * 5000)
    file.write_text(f"{row}\r\n")
    rows = scan(file)
    assert texts(file, rows) == ["A"]
    assert written(file, rows, GOOD).decode() == f"{row[:-1]}, {json.dumps(GOOD._asdict())[1:]}\n"


def test_bytes_that_are_no_text_neither_end_the_file_nor_get_lost(file: Path) -> None:
    file.write_bytes(
        b'{"id": 1, "text": "caf\xe9"}\n{"id": 2, "text": "\\ud800"}\n{"id": 3, "text": "a\xe2\x80\xa8b"}\n'
    )
    rows = scan(file)
    assert texts(file, rows) == ["caf\udce9", "\ud800", "a\u2028b"]
    lines = written(file, rows, BAD, BAD, GOOD).split(b"\n")
    assert [json.loads(line)["text"] for line in lines[:3]] == ["caf\udce9", "\ud800", "a\u2028b"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "is no JSON object"),
        ("[1]", "is no JSON object"),
        ("[" * 100_000, "is no JSON object"),
        ('{"text": "a"}', "has no 'id'"),
        ('{"id": null, "text": "a"}', "'id' must be a string or a whole number, is null"),
        ('{"id": 2, "text": "a", "text": "b"}', "has the key 'text' more than once"),
        ('{"id": 2, "text": "a", "x": [{"y": 1, "y": 1}]}', "has the key 'y' more than once"),
        ('{"id": 2, "error": ""}', "has a column 'error', which is the name of a column of the output"),
    ],
)
def test_a_line_that_is_no_row_is_named(file: Path, line: str, why: str) -> None:
    file.write_text(f'{{"id": 1, "text": "a"}}\n{line}\n')
    with pytest.raises(DataError) as error:
        scan(file)
    assert str(error.value) == f"{file}: line 2: {why}"


def test_a_column_that_no_row_has_is_a_mistake(file: Path) -> None:
    file.write_text('{"id": 1, "body": "a"}\n{"id": 2}\n')
    with pytest.raises(DataError, match=rf"^{file}: no row has a 'text'$"):
        scan(file)
