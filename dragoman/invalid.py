"""Validation errors of pydantic in plain words."""

import re
from typing import Final

from pydantic import ValidationError

# What pydantic says, and what is said instead, in this order.
_PLAIN: Final = (
    (re.compile("^Value error, "), ""),
    (re.compile("^(?:Input|String) should"), "must"),
    (re.compile(r", unable to parse string as an? \w+$"), ""),  # repeats the requirement
    (re.compile(", unable to interpret input$"), ""),
    (re.compile(r"^must be a valid dictionary(?: or instance of \w+)?$"), "must have named fields"),
    (re.compile("^must be a valid boolean$"), "must be true or false"),
    (re.compile("^Extra inputs are not permitted$"), "is no known field"),
)
_OF_NO_VALUE: Final = ("extra_forbidden", "missing")


def describe(error: ValidationError, *, flags: bool = False) -> str:
    """Describe the errors in one line: each invalid field, the requirement, and the given value.

    Args:
        flags: whether the fields are options of a command line.
    """
    return "; ".join([_one(fault, flags=flags) for fault in error.errors()])


def _one(fault: object, *, flags: bool) -> str:
    assert isinstance(fault, dict)
    loc = [str(part) for part in fault["loc"] if part != "[key]"]
    if flags and loc:
        loc[0] = f"--{loc[0].replace('_', '-')}"
    field = (" " if flags else ".").join(loc)
    if not field:  # the error is about several fields, which its message names
        return requirement(fault["msg"])
    given = "" if fault["type"] in _OF_NO_VALUE else f", not {fault['input']!r:.80}"
    return f"{field}: {requirement(fault['msg'])}{given}"


def requirement(message: str) -> str:
    """Give the requirement for a value, from the message of one error."""
    for pattern, plain in _PLAIN:
        message = pattern.sub(plain, message)
    return message
