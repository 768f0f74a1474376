"""Codes of languages, BCP-47: what is one, and which of them a model's language serves."""

import re
from typing import Final, Protocol

# Of what BCP-47 allows, the codes of languages with region, script and variants; no names such as "English".
PATTERN: Final = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,4}$"
RULE: Final = 'must be a BCP-47 code such as "en" or "en-US"'

_CODE = re.compile(PATTERN)


class HasLanguages(Protocol):
    """A model, or what tells of one."""

    @property
    def source_language(self) -> str:
        """That it translates from."""

    @property
    def target_language(self) -> str:
        """That it translates into."""


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


def translates(model: HasLanguages, source: str, target: str) -> bool:
    """Tell whether a model is for two languages; "": any."""
    return covers(model.source_language, source) and covers(model.target_language, target)


def specificity(model: HasLanguages) -> int:
    """Count how closely a model fits two languages that it translates: en-GB to de is closer than en to de."""
    return len(model.source_language) + len(model.target_language)
