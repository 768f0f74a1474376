"""The columns of a row: those required in the input, and those added in the output."""

from typing import NamedTuple

from dragoman.surrogates import is_whole
from plugins.json_kinds import json_kind


class Columns(NamedTuple):
    """The input columns that are read.

    Attributes:
        id: the name of the column that identifies rows.
        text: the name of the column to translate.
    """

    id: str
    text: str


class Outcome(NamedTuple):
    """The values added to a row; the field names are the column names.

    Attributes:
        translation: the translation of the text; None if there is an error.
        finish_reason: as in `dragoman.Translation`; None if there is an error.
        split: as in `dragoman.Translation`; None if there is an error.
        unknown_pieces: as in `dragoman.Translation`; None if there is an error.
        error: why the text has no translation, in one line; None if it has one.
        model_sha256: SHA-256 of the checkpoint from which the model was exported.
    """

    translation: str | None
    finish_reason: str | None
    split: bool | None
    unknown_pieces: int | None
    error: str | None
    model_sha256: str


def wrong_columns(names: list[str], columns: Columns) -> str:
    """Say what is wrong with the columns of a file; "" if nothing is wrong."""
    if not all(is_whole(name) and "\0" not in name for name in names):  # UTF-16 has NUL at every second byte
        return "is not UTF-8"
    for name in columns:
        if name not in names:
            return f"has no column {name!r}; there are: {', '.join(names) or 'none'}"
        if names.count(name) > 1:
            return f"has {names.count(name)} columns {name!r}, must have one"
    return taken_column(names)


def taken_column(names: list[str]) -> str:
    """Name an input column that has the name of an added column; "" if none has."""
    taken = [name for name in names if name in Outcome._fields]
    return f"has a column {taken[0]!r}, which is the name of a column of the output" if taken else ""


def checked_id(value: object) -> str:
    """Check an id and return it as text.

    Raises:
        ValueError: the value is no valid id; the message says what an id must be.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        is_ = value if isinstance(value, float) else json_kind(value)
        raise ValueError(f"must be a string or a whole number, is {is_}")
    if wrong := wrong_text(str(value)):
        raise ValueError(wrong)
    return str(value)


def wrong_text(value: object) -> str:
    """Say why no model could translate a text; "" if nothing is wrong with it."""
    if not isinstance(value, str):
        return f"must be a string, is {json_kind(value)}"
    if not value.strip():
        return "is empty"
    return "" if is_whole(value) else "is no valid Unicode"
