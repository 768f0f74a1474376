import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from plugins.bulk import plan, unique
from plugins.bulk.columns import Columns
from plugins.bulk.formats import format_of
from plugins.bulk.plan import Chunk, planned

COLUMNS = Columns("id", "text")


def write(path: Path, ids: list[str]) -> Path:
    path.write_text("".join(f'{{"id": "{id_}", "text": "text {id_}"}}\n' for id_ in ids))
    return path


def texts(chunk: Chunk) -> list[object]:
    path = Path(chunk.path)
    return list(format_of(path).read(path, COLUMNS, chunk.start, chunk.end).texts)


@given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=3), part_rows=st.integers(1, 10))
def test_the_chunks_have_each_row_once_and_in_order(tmp_path_factory, sizes, part_rows) -> None:
    folder = tmp_path_factory.mktemp("plan")
    files = [write(folder / f"{n}.jsonl", [f"{n}-{row}" for row in range(size)]) for n, size in enumerate(sizes)]
    chunks = planned(files, COLUMNS, part_rows)
    assert [chunk.number for chunk in chunks] == list(range(len(chunks)))
    assert all(1 <= chunk.rows <= part_rows for chunk in chunks)
    assert [len(texts(chunk)) for chunk in chunks] == [chunk.rows for chunk in chunks]
    expected = [f"text {n}-{row}" for n, size in enumerate(sizes) for row in range(size)]
    assert [text for chunk in chunks for text in texts(chunk)] == expected
    assert planned(files, COLUMNS, part_rows) == chunks


def test_a_chunk_of_much_text_has_fewer_rows(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(plan, "_PART_BYTES", 100)
    chunks = planned([write(tmp_path / "a.jsonl", ["a" * 60, "b", "c", "d" * 200])], COLUMNS, 10)
    assert [chunk.rows for chunk in chunks] == [1, 2, 1]


def test_two_rows_with_one_id_are_named(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.jsonl", ["a", "b"]), write(tmp_path / "b.jsonl", ["c", "b", "a"])]
    with pytest.raises(DataError) as error:
        planned(files, COLUMNS, 10)
    assert str(error.value) == (
        f"'id' must be another one in each row: 'b' is that of row 2 of {files[0]} and of row 2 of {files[1]}"
    )


def test_a_number_and_a_string_are_the_same_id(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}\n')
    with pytest.raises(DataError, match="'1' is that of row 1"):
        planned([file], COLUMNS, 10)


def test_ids_of_one_hash_are_not_taken_for_one(tmp_path: Path, monkeypatch) -> None:
    for module in (plan, unique):
        monkeypatch.setattr(module, "hash", len, raising=False)
    assert len(planned([write(tmp_path / "a.jsonl", ["a", "b"])], COLUMNS, 1)) == 2
    with pytest.raises(DataError, match="'b' is that of row 2"):
        planned([write(tmp_path / "b.jsonl", ["a", "b", "b"])], COLUMNS, 1)


def test_parts_are_named_by_their_numbers_and_formats(tmp_path: Path) -> None:
    [chunk] = planned([write(tmp_path / "a.JSONL", ["a"])], COLUMNS, 10)
    assert chunk.part(tmp_path) == tmp_path / "part-00000000.jsonl"


def test_a_file_that_was_written_to_is_another_one(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", ["a"])
    [chunk] = planned([file], COLUMNS, 10)
    chunk.check_unchanged()
    os.utime(file, ns=(0, 0))
    with pytest.raises(DataError, match=f"^{file}: was changed while it was translated$"):
        chunk.check_unchanged()
