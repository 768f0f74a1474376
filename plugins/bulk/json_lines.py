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
                objects = [(line.text, _object(line)) for line in lines_between(stream, start, end)]
            except ValueError as error:
                raise DataError(f"{path}: {error}") from error
        return JsonRows([(text, content) for text, content in objects if content is not None], columns)


class JsonRows:
    """Objects of a file, each with its source."""

    def __init__(self, objects: Sequence[tuple[str, dict[str, Any]]], columns: Columns) -> None:
        self._sources = [source for source, _ in objects]
        self.texts = [content.get(columns.text) for _, content in objects]

    def with_outcomes(self, outcomes: Sequence[Outcome]) -> bytes:
        """As `Rows.with_outcomes`."""
        return b"".join(_line(*pair) for pair in zip(self._sources, outcomes, strict=True))


def _object(line: Line) -> dict[str, Any] | None:
    """Read a line; None for an empty line."""
    if not line.text.strip():
        return None
    try:
        content = json.loads(line.text, object_pairs_hook=_unique, parse_int=_whole_number)
    except _RepeatedKeyError:
        raise
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ValueError("is no JSON object")
    return content


def _whole_number(literal: str) -> int | float:
    """Read a whole number; one with more digits than Python reads is infinite."""
    try:
        return int(literal)
    except ValueError:
        return float(literal)


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


def _line(source: str, outcome: Outcome) -> bytes:
    """Add an outcome to the source of a row, which has at least an id: all other columns stay as they are written."""
    added = json.dumps(outcome._asdict(), ensure_ascii=False)
    # A lone surrogate can only be written as an escape.
    return f"{source.rstrip().removesuffix('}')}, {added[1:]}\n".encode(errors="backslashreplace")
