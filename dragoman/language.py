"""Codes of languages, BCP-47: what is one, and which of them a model's language serves."""

import re
from typing import Final

# Of what BCP-47 allows, the codes of languages with region, script and variants; no names such as "English".
PATTERN: Final = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,4}$"
RULE: Final = 'must be a BCP-47 code such as "en" or "en-US"'

_CODE = re.compile(PATTERN)


def is_code(text: str) -> bool:
    """Tell whether a text has the form of a code."""
    return _CODE.fullmatch(text) is not None


def covers(served: str, asked: str) -> bool:
    """Tell whether a model's language serves an asked one: en serves EN and en-US, en-US does not serve en.

    Args:
        served: the language of a model.
        asked: the language that is wanted; "": any.
    """
    served, asked = served.lower(), asked.lower()
    return not asked or asked == served or asked.startswith(served + "-")
