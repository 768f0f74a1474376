"""Lists in two forms: a table, or JSON."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

_SHOWN: Final = 4  # values in a cell of the table


def write_list(items: Iterable[object], fields: Mapping[str, str], *, as_json: bool) -> None:
    """Write items to standard output.

    Args:
        items: objects whose attributes are shown; a missing attribute is null, and "-" in a table.
        fields: the attribute names, by column heads.
        as_json: True: write a list with an object for each item, not a table.
    """
    rows = [{field: getattr(item, field, None) for field in fields.values()} for item in items]
    text = json.dumps(rows, indent=2, ensure_ascii=False) if as_json else _table(list(fields), rows)
    sys.stdout.buffer.write(text.encode() + b"\n")


def _table(heads: list[str], rows: Sequence[dict[str, Any]]) -> str:
    cells = [heads, *[[_cell(value) for value in row.values()] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    """Format a value for a cell; of a long sequence only the first values."""
    if isinstance(value, tuple):
        return ",".join(value[:_SHOWN]) + (f",... ({len(value)})" if len(value) > _SHOWN else "")
    return "-" if value in (None, "") else str(value)
