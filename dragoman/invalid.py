"""The errors of pydantic in words for people."""

from pydantic import ValidationError


def describe(error: ValidationError) -> str:
    """Say in one line what is wrong: each bad field, why, and its value where it is one."""
    return "; ".join(map(_one, error.errors()))


def _one(fault: object) -> str:
    assert isinstance(fault, dict)
    field = ".".join(map(str, fault["loc"]))
    message = fault["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
    if not field:  # about several fields, which the message names
        return str(message)
    return f"{field}: {message}, not {fault['input']!r:.80}"
