from pathlib import Path

import pytest

from dragoman.errors import DataError
from tests.unit.service.bulk.rows_of_a_test import BAD, GOOD, scan, texts, written


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
