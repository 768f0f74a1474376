"""Language codes, BCP-47: their form, and which language of a model fits a requested one."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

# The part of BCP-47 for languages with script, region and variants; no names such as "English".
PATTERN: Final = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,4}$"
AUTO: Final = "auto"  # as source language: the server detects the language
_NAMED: Final = 8  # maximum number of names in a message
RULE: Final = 'must be a BCP-47 code such as "en" or "en-US"'

_CODE = re.compile(PATTERN)


class HasLanguages(Protocol):
    """A model, or a description of one."""

    @property
    def source_languages(self) -> Sequence[str]:
        """The languages that the model translates from, each into every target except itself."""

    @property
    def target_languages(self) -> Sequence[str]:
        """The languages that the model translates into."""


def several(names: Sequence[str], separator: str = ", ") -> str:
    """List names, such as language codes, for a message; of many only the first ones."""
    return separator.join((*names[:_NAMED], "...") if len(names) > _NAMED else names)


def pair(source: str, target: str) -> str:
    """Describe a source and a target language in a message; "": any."""
    return f"{source or 'any'} to {target or 'any'}"


def is_code(text: str) -> bool:
    """Tell whether a text has the form of a language code."""
    return _CODE.fullmatch(text) is not None


def covers(served: str, asked: str) -> bool:
    """Tell whether a model's language serves a requested one: en serves EN and en-US, en-US does not serve en.

    Args:
        served: the language of a model.
        asked: the requested language; "": any.
    """
    return not asked or served.lower() in _broader(asked)


def by_code(codes: Iterable[str]) -> dict[str, str]:
    """Index languages by their codes in lower case."""
    return {code.lower(): code for code in codes}


def closest(served: Mapping[str, str], asked: str) -> str | None:
    """Find the language that covers a requested one most closely; None if none does.

    Args:
        served: the languages of a model, see `by_code`.
        asked: the requested language; "": gives the only served language, or None if there are several.
    """
    if not asked:
        return next(iter(served.values())) if len(served) == 1 else None
    return next((served[code] for code in _broader(asked) if code in served), None)


def _broader(code: str) -> Iterator[str]:
    """Yield a code and all codes that cover it, in lower case, the closest first: de-at-1996, de-at, de."""
    code = code.lower()
    while code:
        yield code
        code = code.rpartition("-")[0]


def translates(model: HasLanguages, source: str, target: str) -> bool:
    """Tell whether a model translates between two languages; "": any."""
    return any(covers(code, source) for code in model.source_languages) and any(
        covers(code, target) for code in model.target_languages
    )


def is_pair(model: HasLanguages) -> bool:
    """Tell whether a model has one source and one target language."""
    return len(model.source_languages) == len(model.target_languages) == 1


def specificity(model: HasLanguages, source: str, target: str) -> tuple[bool, int]:
    """Rate how closely a model fits two languages that it translates; a higher value is closer.

    A model for one pair is closer than one for many, and en-GB to de is closer than en to de.
    """
    sides = (model.source_languages, source), (model.target_languages, target)
    return is_pair(model), sum(len(closest(by_code(served), asked) or "") for served, asked in sides)


def quoted(code: str) -> str:
    """Format a code for a message; "" stands for any language."""
    return repr(code) if code else "any language"


def described(model: HasLanguages) -> str:
    """Describe the languages of a model: a single language by its code, several by their number."""
    sides = (model.source_languages, model.target_languages)
    return " to ".join(side[0] if len(side) == 1 else f"{len(side)} languages" for side in sides)
