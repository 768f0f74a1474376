"""The errors of pydantic in words for people."""

import re
from typing import Final

from pydantic import ValidationError

_SUBJECT: Final = re.compile("^(?:Input|String) should")
_UNPARSED: Final = re.compile(r", unable to parse string as an? \w+$")  # says the requirement once more


def describe(error: ValidationError) -> str:
    """Say in one line what is wrong: each bad field, why, and its value where it is one."""
    return "; ".join(map(_one, error.errors()))


def _one(fault: object) -> str:
    assert isinstance(fault, dict)
    field = ".".join(str(part) for part in fault["loc"] if part != "[key]")
    if not field:  # about several fields, which the message names
        return requirement(fault["msg"])
    return f"{field}: {requirement(fault['msg'])}, not {fault['input']!r:.80}"


def requirement(message: str) -> str:
    """Say what a value must be, of the message of one error."""
    message = _UNPARSED.sub("", message.removeprefix("Value error, "))
    return _SUBJECT.sub("must", message)
