from datetime import date
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DataError
from tests.unit.plugins.bulk.rows_of_a_test import BAD, GOOD, scan, texts, written

pa = pytest.importorskip("pyarrow", reason='parquet needs the extra "bulk"; make test-bulk has it')
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "in.parquet"


def write(file: Path, columns: dict[str, Any], **options: Any) -> None:
    pq.write_table(pa.table(columns), file, **options)


def test_rows_are_read_across_row_groups(file: Path) -> None:
    count = 25
    write(file, {"id": list(range(count)), "text": [f"text {n}" for n in range(count)]}, row_group_size=4)
    rows = scan(file)
    assert [row.id for row in rows] == [str(n) for n in range(count)]
    for first, last in ((0, 24), (3, 4), (4, 7), (7, 17), (24, 24)):
        assert texts(file, rows[first : last + 1]) == [f"text {n}" for n in range(first, last + 1)]


def test_types_of_all_columns_stay(file: Path) -> None:
    table = {"id": pa.array([2**40], pa.int64()), "text": ["a"], "d": [Decimal("1.50")], "t": [date(2026, 11, 23)]}
    write(file, table)
    read = pq.read_table(BytesIO(written(file, scan(file), GOOD)))
    assert read.schema.names == ["id", "text", "d", "t", *GOOD._fields]
    assert read.select(["id", "text", "d", "t"]).equals(pq.read_table(file))
    assert read.select(list(GOOD._fields)).to_pylist() == [GOOD._asdict()]


def test_columns_of_nulls_have_types_too(file: Path) -> None:
    write(file, {"id": ["a"], "text": pa.array([None], pa.string())})
    read = pq.read_table(BytesIO(written(file, scan(file), BAD)))
    assert read.to_pylist() == [{"id": "a", "text": None, **BAD._asdict()}]
    assert [str(read.schema.field(name).type) for name in BAD._fields] == [
        "string", "string", "bool", "int64", "string", "string",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_strings_of_any_kind_are_texts(file: Path, kind: Any) -> None:
    write(file, {"id": pa.array(["a", "b"], kind), "text": pa.array(["x", None], kind)})
    assert [row.id for row in scan(file)] == ["a", "b"]
    assert texts(file, scan(file)) == ["x", None]


def test_bytes_that_are_no_text_do_not_end_the_file(file: Path) -> None:
    bad = pa.array([b"caf\xe9", b"b"], pa.binary()).view(pa.string())
    write(file, {"id": [1, 2], "text": bad})
    assert texts(file, scan(file)) == ["caf\udce9", "b"]


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"id": [1], "body": ["a"]}, "has no column 'text'; there are: id, body"),
        ({"id": [1.5], "text": ["a"]}, "column 'id' must be of strings or whole numbers, is of double"),
        ({"id": [1], "text": [2]}, "column 'text' must be of strings, is of int64"),
        ({"id": [1, None], "text": ["a", "b"]}, "row 2: 'id' must be a string or a whole number, is null"),
        (
            {"id": [1], "text": ["a"], "split": ["a"]},
            "has a column 'split', which is the name of a column of the output",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(file: Path, columns: dict[str, Any], why: str) -> None:
    write(file, columns)
    with pytest.raises(DataError) as error:
        scan(file)
    assert str(error.value) == f"{file}: {why}"


def test_a_text_of_two_columns_is_refused(file: Path) -> None:
    pq.write_table(
        pa.Table.from_arrays([pa.array(["1"]), pa.array(["a"]), pa.array(["b"])], ["id", "text", "text"]), file
    )
    with pytest.raises(DataError, match=rf"^{file}: has 2 columns 'text', must have one$"):
        scan(file)


def test_what_is_no_parquet_is_refused(file: Path) -> None:
    file.write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match=rf"^{file}: "):
        scan(file)
