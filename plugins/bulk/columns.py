"""The columns of a row: what the input must have, and what the output has besides."""

from typing import NamedTuple

from dragoman.surrogates import is_whole
from plugins.json_kinds import json_kind


class Columns(NamedTuple):
    """Which columns of the input are read.

    Attributes:
        id: the name of the one that tells rows apart.
        text: the name of the one that is translated.
    """

    id: str
    text: str


class Outcome(NamedTuple):
    """What is added to a row; the names are those of the columns.

    Attributes:
        translation: of the text; None where there is an error.
        finish_reason: as in `dragoman.Translation`; None where there is an error.
        split: likewise.
        unknown_pieces: likewise.
        error: why the text has no translation, in one line; None where it has one.
        model_sha256: SHA-256 of the checkpoint that the model was exported from.
    """

    translation: str | None
    finish_reason: str | None
    split: bool | None
    unknown_pieces: int | None
    error: str | None
    model_sha256: str


def wrong_columns(names: list[str], columns: Columns) -> str:
    """Say what is wrong with the columns of a file; "" if nothing is."""
    for name in columns:
        if name not in names:
            return f"has no column {name!r}; there are: {', '.join(names) or 'none'}"
        if names.count(name) > 1:
            return f"has {names.count(name)} columns {name!r}, must have one"
    return taken_column(names)


def taken_column(names: list[str]) -> str:
    """Say which column of the input has the name of one that is added; "" if none has."""
    taken = [name for name in names if name in Outcome._fields]
    return f"has a column {taken[0]!r}, which is the name of a column of the output" if taken else ""


def checked_id(value: object) -> str:
    """Read an id.

    Raises:
        ValueError: it is none; says what it must be.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        is_ = value if isinstance(value, float) else json_kind(value)
        raise ValueError(f"must be a string or a whole number, is {is_}")
    if wrong := wrong_text(str(value)):
        raise ValueError(wrong)
    return str(value)


def wrong_text(value: object) -> str:
    """Say why a text cannot be translated, whatever the model; "" if nothing is known."""
    if not isinstance(value, str):
        return f"must be a string, is {json_kind(value)}"
    if not value.strip():
        return "is empty"
    return "" if is_whole(value) else "is no valid Unicode"
