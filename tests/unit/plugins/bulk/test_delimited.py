import csv
import io
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.errors import DataError
from tests.unit.plugins.bulk.rows_of_a_test import BAD, GOOD, scan, texts, written


def test_fields_of_csv_may_hold_commas_quotes_and_line_breaks(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_bytes(b'\xef\xbb\xbfid,text,more\r\n1,"a, ""b""\nc",x\r\n\r\n2,caf\xe9,y\r\n007,,z')
    rows = scan(file)
    assert [row.id for row in rows] == ["1", "2", "007"]
    assert texts(file, rows) == ['a, "b"\nc', "caf\udce9", ""]
    assert [texts(file, [row])[0] for row in rows] == texts(file, rows)
    assert written(file, rows[:2], GOOD, BAD) == (
        b"id,text,more,translation,finish_reason,split,unknown_pieces,error,model_sha256\n"
        b'1,"a, ""b""\nc",x,Hallo.,EOS,false,0,,abc\n'
        b"2,caf\xe9,y,,,,,is empty,abc\n"
    )


_CONTROLS = [chr(code) for code in (*range(0x20), 0x7F, 0x85, 0x2028, 0x2029)]
_FIELDS = st.text(st.sampled_from([*_CONTROLS, '"', "'", ",", ";", " ", "a", "é"]), max_size=8)


def with_quotes(*fields: str) -> bytes:
    """Write a row by the rule of the format alone."""
    return ",".join('"' + field.replace('"', '""') + '"' for field in fields).encode() + b"\n"


def made_of(rows: list[tuple[str, str]], folder: Path) -> bytes:
    """Give what is written of rows of a text and another column, each with a translation that is its text."""
    file = folder / "in.csv"
    file.write_bytes(b"id,text,more\n" + b"".join(with_quotes(str(n), *row) for n, row in enumerate(rows)))
    found = scan(file)
    assert texts(file, found) == [text for text, _ in rows]
    return written(file, found, *(GOOD._replace(translation=text) for text, _ in rows))


def expected_of(rows: list[tuple[str, str]]) -> list[list[str]]:
    return [[str(n), text, more, text, "EOS", "false", "0", "", "abc"] for n, (text, more) in enumerate(rows)]


@given(st.lists(st.tuples(_FIELDS, _FIELDS), min_size=1, max_size=4))
@example([("a\rb", "\r"), ("\r\n", "\x85")])
def test_a_reader_of_csv_finds_each_row_once_whatever_its_fields_hold(rows: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as folder:
        content = made_of(rows, Path(folder))
    assert list(csv.reader(io.StringIO(content.decode(), newline="")))[1:] == expected_of(rows)


@pytest.mark.skipif(find_spec("pyarrow") is None, reason='pyarrow comes with the extra "bulk"; make test-bulk has it')
@given(st.lists(st.tuples(_FIELDS, _FIELDS), min_size=1, max_size=4))
@example([("a\rb", "\r"), ("\r\n", "\x85")])
def test_so_does_pyarrow(rows: list[tuple[str, str]]) -> None:
    from pyarrow import csv as arrow_csv

    with TemporaryDirectory() as folder:
        content = made_of(rows, Path(folder))
    names = [f"column {number}" for number in range(9)]
    read = arrow_csv.read_csv(
        io.BytesIO(content),
        read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=1),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, "string"), strings_can_be_null=False
        ),
    )
    assert [list(row.values()) for row in read.to_pylist()] == expected_of(rows)


def test_quotation_marks_of_tsv_mean_nothing(tmp_path: Path) -> None:
    file = tmp_path / "in.tsv"
    file.write_text('text\tid\n"Oh!\t1\nsays he."\t2\n')
    rows = scan(file)
    assert texts(file, rows) == ['"Oh!', 'says he."']
    outcome = GOOD._replace(translation='"a"\tb\r\nc')
    assert written(file, rows[:1], outcome).splitlines()[1] == b'"Oh!\t1\t"a" b  c\tEOS\tfalse\t0\t\tabc'


def test_a_long_field_is_a_field(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text(f"id,text\n1,{'a' * 300_000}\n")
    assert texts(file, scan(file)) == ["a" * 300_000]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "has no column 'id'; there are: none"),
        ("id,body\n1,a\n", "has no column 'text'; there are: id, body"),
        ("id,text,text\n1,a,b\n", "has 2 columns 'text', must have one"),
        ("id,text\n1,a\n2\n", "row 2: has 1 fields, the first line 2"),
        ("id,text\n1,a\n2,b,c\n", "row 2: has 3 fields, the first line 2"),
        ("id,text\n,a\n", "row 1: 'id' is empty"),
        ('id,text\n1,"a\n', "the row at byte 8: unexpected end of data"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: str, why: str) -> None:
    file = tmp_path / "in.csv"
    file.write_text(content)
    with pytest.raises(DataError) as error:
        scan(file)
    assert str(error.value) == f"{file}: {why}"
