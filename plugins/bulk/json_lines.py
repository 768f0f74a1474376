"""JSON lines: one object per line."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dragoman.errors import DataError
from dragoman.files import open_regular
from plugins.bulk.columns import Columns, Outcome, checked_id, taken_column
from plugins.bulk.lines import Line, lines_between
from plugins.bulk.rows import Row


class _RepeatedKeyError(ValueError):
    """An object has a key twice; the reader would keep only one."""


class JsonLines:
    """Reads and writes JSON lines. Empty lines are no rows."""

    def scan(self, path: Path, columns: Columns) -> Iterator[Row]:
        """As `Format.scan`."""
        rows = rows_with_text = 0
        with open_regular(path) as stream:
            for number, line in enumerate(lines_between(stream, 0, None), start=1):
                try:
                    if (content := _object(line)) is not None:
                        rows, rows_with_text = rows + 1, rows_with_text + (columns.text in content)
                        yield Row(_id(content, columns), line.start, line.end, line.end - line.start)
                except ValueError as error:
                    raise DataError(f"{path}: line {number}: {error}") from error
        if rows and not rows_with_text:
            raise DataError(f"{path}: no row has a {columns.text!r}")

    def read(self, path: Path, columns: Columns, start: int, end: int) -> "JsonRows":
        """As `Format.read`."""
        with open_regular(path) as stream:
            try:
                objects = [_object(line) for line in lines_between(stream, start, end)]
            except ValueError as error:
                raise DataError(f"{path}: {error}") from error
        return JsonRows([content for content in objects if content is not None], columns)


class JsonRows:
    """Objects of a file."""

    def __init__(self, objects: Sequence[dict[str, Any]], columns: Columns) -> None:
        self._objects = objects
        self.texts = [content.get(columns.text) for content in objects]

    def with_outcomes(self, outcomes: Sequence[Outcome]) -> bytes:
        """As `Rows.with_outcomes`."""
        pairs = zip(self._objects, outcomes, strict=True)
        return b"".join(_line(content | outcome._asdict()) for content, outcome in pairs)


def _object(line: Line) -> dict[str, Any] | None:
    """Read a line; None for an empty line."""
    if not line.text.strip():
        return None
    try:
        content = json.loads(line.text, object_pairs_hook=_unique)
    except _RepeatedKeyError:
        raise
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ValueError("is no JSON object")
    return content


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise _RepeatedKeyError(f"has the key {name!r} more than once")
        content[name] = value
    return content


def _id(content: dict[str, Any], columns: Columns) -> str:
    if taken := taken_column(list(content)):
        raise ValueError(taken)
    if columns.id not in content:
        raise ValueError(f"has no {columns.id!r}")
    try:
        return checked_id(content[columns.id])
    except ValueError as error:
        raise ValueError(f"{columns.id!r} {error}") from error


def _line(content: dict[str, Any]) -> bytes:
    try:
        return json.dumps(content, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate can only be written as an escape
        return json.dumps(content).encode() + b"\n"
