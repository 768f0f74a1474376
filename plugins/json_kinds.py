"""Kinds of values that JSON has, for messages."""

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
    """Name the kind of a value; of one that JSON has not, as Parquet has them, the type."""
    return _KINDS.get(type(value), type(value).__name__)
