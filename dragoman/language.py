"""Codes of languages, BCP-47: what is one, and which of them a model's language serves."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

# Of what BCP-47 allows, the codes of languages with region, script and variants; no names such as "English".
PATTERN: Final = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,4}$"
AUTO: Final = "auto"  # in place of a source language: it is to be detected
_NAMED: Final = 8  # names in a message
RULE: Final = 'must be a BCP-47 code such as "en" or "en-US"'

_CODE = re.compile(PATTERN)


class HasLanguages(Protocol):
    """A model, or what tells of one."""

    @property
    def source_languages(self) -> Sequence[str]:
        """Those that it translates from, each into each target but itself."""

    @property
    def target_languages(self) -> Sequence[str]:
        """Those that it translates into."""


def several(names: Sequence[str], separator: str = ", ") -> str:
    """List names in a message, such as codes of languages, as many as a line has room for."""
    return separator.join((*names[:_NAMED], "...") if len(names) > _NAMED else names)


def pair(source: str, target: str) -> str:
    """Name a source and a target language in a message; "": any."""
    return f"{source or 'any'} to {target or 'any'}"


def is_code(text: str) -> bool:
    """Tell whether a text has the form of a code."""
    return _CODE.fullmatch(text) is not None


def covers(served: str, asked: str) -> bool:
    """Tell whether a model's language serves an asked one: en serves EN and en-US, en-US does not serve en.

    Args:
        served: the language of a model.
        asked: the language that is wanted; "": any.
    """
    return not asked or served.lower() in _broader(asked)


def by_code(codes: Iterable[str]) -> dict[str, str]:
    """List languages by their codes in lower case."""
    return {code.lower(): code for code in codes}


def closest(served: Mapping[str, str], asked: str) -> str | None:
    """Find the language that covers an asked one most closely; None where none does.

    Args:
        served: the languages of a model, see `by_code`.
        asked: the language that is wanted; "": the only one that is served, and none where there are several.
    """
    if not asked:
        return next(iter(served.values())) if len(served) == 1 else None
    return next((served[code] for code in _broader(asked) if code in served), None)


def _broader(code: str) -> Iterator[str]:
    """Yield a code and all that cover it, in lower case, the closest first: de-at-1996, de-at, de."""
    code = code.lower()
    while code:
        yield code
        code = code.rpartition("-")[0]


def translates(model: HasLanguages, source: str, target: str) -> bool:
    """Tell whether a model is for two languages; "": any."""
    return any(covers(code, source) for code in model.source_languages) and any(
        covers(code, target) for code in model.target_languages
    )


def is_pair(model: HasLanguages) -> bool:
    """Tell whether a model has one source and one target language."""
    return len(model.source_languages) == len(model.target_languages) == 1


def specificity(model: HasLanguages, source: str, target: str) -> tuple[bool, int]:
    """Say how closely a model fits two languages that it translates; the more, the closer.

    A model for one pair is closer than one for many, and en-GB to de is closer than en to de.
    """
    sides = (model.source_languages, source), (model.target_languages, target)
    return is_pair(model), sum(len(closest(by_code(served), asked) or "") for served, asked in sides)


def quoted(code: str) -> str:
    """Write a code in a message; "" stands for any language."""
    return repr(code) if code else "any language"


def described(model: HasLanguages) -> str:
    """Say for people what a model translates: a pair as such, of many languages how many there are."""
    sides = (model.source_languages, model.target_languages)
    return " to ".join(side[0] if len(side) == 1 else f"{len(side)} languages" for side in sides)
