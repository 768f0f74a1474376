"""Validation errors of pydantic in plain words."""

import re
from typing import Final

from pydantic import ValidationError

_SUBJECT: Final = re.compile("^(?:Input|String) should")
_UNPARSED: Final = re.compile(r", unable to parse string as an? \w+$")  # repeats the requirement


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
    return f"{field}: {requirement(fault['msg'])}, not {fault['input']!r:.80}"


def requirement(message: str) -> str:
    """Give the requirement for a value, from the message of one error."""
    message = _UNPARSED.sub("", message.removeprefix("Value error, "))
    return _SUBJECT.sub("must", message)
