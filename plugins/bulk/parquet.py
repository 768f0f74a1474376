"""Parquet, with pyarrow: the types of all columns stay unchanged."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from dragoman.errors import DataError
from plugins.bulk.columns import Columns, Outcome, checked_id, wrong_columns
from plugins.bulk.rows import Row

_TYPES: Final = {
    "translation": pa.string(),
    "finish_reason": pa.string(),
    "split": pa.bool_(),
    "unknown_pieces": pa.int64(),
    "error": pa.string(),
    "model_sha256": pa.string(),
}
_NULL_BYTES: Final = 1  # counted for a missing text
_BATCH_ROWS: Final = 16_384


class Parquet:
    """Reads and writes Parquet."""

    def scan(self, path: Path, columns: Columns) -> Iterator[Row]:
        """As `Format.scan`."""
        with _errors_of(path):
            file = pq.ParquetFile(path)
            if wrong := wrong_columns(file.schema_arrow.names, columns) or _wrong_types(file.schema_arrow, columns):
                raise DataError(f"{path}: {wrong}")
            number = 0
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns)):
                ids = _values(batch.column(columns.id))
                texts = _texts(batch.column(columns.text))
                for value, text in zip(ids, texts, strict=True):
                    try:
                        row_id = checked_id(value)
                    except ValueError as error:
                        raise DataError(f"{path}: row {number + 1}: {columns.id!r} {error}") from error
                    yield Row(row_id, number, number + 1, len(text) if text else _NULL_BYTES)
                    number += 1

    def read(self, path: Path, columns: Columns, start: int, end: int) -> "ParquetRows":
        """As `Format.read`."""
        with _errors_of(path):
            metadata = pq.read_metadata(path)
            sizes = (metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
            parts = []
            for group, (first, last) in enumerate(pairwise(accumulate(sizes, initial=0))):
                if first < end and start < last:
                    inside = max(start - first, 0)
                    parts.append(_row_group(path, group).slice(inside, min(end, last) - first - inside))
            return ParquetRows(pa.concat_tables(parts), columns)


class ParquetRows:
    """Rows of a file."""

    def __init__(self, table: Any, columns: Columns) -> None:
        self._table = table
        self.texts = _texts(table.column(columns.text))

    def with_outcomes(self, outcomes: Sequence[Outcome]) -> bytes:
        """As `Rows.with_outcomes`."""
        table = self._table
        for name, values in zip(Outcome._fields, zip(*outcomes, strict=True), strict=True):
            table = table.append_column(name, pa.array(values, _TYPES[name]))
        stream = pa.BufferOutputStream()
        pq.write_table(table, stream)
        content: bytes = stream.getvalue().to_pybytes()
        return content


@lru_cache(maxsize=1)
def _row_group(path: Path, group: int) -> Any:
    """Read a row group; several consecutive parts may come from the same group."""
    return pq.ParquetFile(path).read_row_group(group)


def _wrong_types(schema: Any, columns: Columns) -> str:
    id_type, text_type = (_plain(schema.field(name).type) for name in columns)
    if not (pa.types.is_integer(id_type) or _is_string(id_type)):
        return f"column {columns.id!r} must be of strings or whole numbers, is of {id_type}"
    return "" if _is_string(text_type) else f"column {columns.text!r} must be of strings, is of {text_type}"


def _plain(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_string(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _values(column: Any) -> Sequence[object]:
    if _is_string(_plain(column.type)):
        return _texts(column)
    values: list[object] = column.to_pylist()
    return values


def _texts(column: Any) -> list[str | None]:
    """Read strings; a lone surrogate stands for each byte that is not UTF-8, since files may hold such bytes."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    contents = column.cast(pa.large_binary()).to_pylist()
    return [content if content is None else content.decode(errors="surrogateescape") for content in contents]


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Raise a DataError in place of a pyarrow error."""
    try:
        yield
    except pa.ArrowException as error:
        raise DataError(f"{path}: {error}") from error
