"""Names of the kinds of JSON values, for messages."""

from collections.abc import Mapping
from typing import Final

_KINDS: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def json_kind(value: object) -> str:
    """Name the kind of a value; for a value that JSON lacks, as in Parquet files, name its type."""
    return _KINDS.get(type(value), type(value).__name__)
