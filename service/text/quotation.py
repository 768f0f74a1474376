"""Quotation marks that a language rarely has: a model has seen few of them, so it reads straight ones."""

import re
from typing import Final

_GUILLEMETS: Final = r"«(?=\s*[^\s»])[^«»]*»|»(?!\s)[^«»]*(?<!\s)«|‹(?=\s*[^\s›])[^‹›]*›|›(?!\s)[^‹›]*(?<!\s)‹"
_RARE: Final = {
    "de": re.compile(rf"{_GUILLEMETS}|“[^„“”]*”|‚[^‚‘’]*[‘’](?!\w)"),
    # But rock ‘n’ roll, the ‘90s, ‘tis, and the boys’ ball.
    "en": re.compile(
        rf"{_GUILLEMETS}|(?<!\w)‘(?!\d|(?i:cause|em|til|tis|twas)\b)(?:[^‘’]|’(?=\w)|(?<=s)’(?= )){{2,}}’(?!\w)"
    ),
}


def with_common_quotes(text: str, language: str) -> str:
    """Write the rare quotation marks of a text as straight ones; the text keeps its length.

    Args:
        language: of the text, a BCP-47 code; "" where it is not known.
    """
    rare = _RARE.get(language.partition("-")[0].lower())
    return text if rare is None else rare.sub(_straight, text)


def _straight(found: re.Match[str]) -> str:
    """Put straight marks around a quotation; blanks inside the marks, as in French, go outside."""
    inside = found[0][1:-1]
    if not inside.strip():
        return found[0]
    start, stop = len(inside) - len(inside.lstrip()), len(inside.rstrip())
    return f'{inside[:start]}"{inside[start:stop]}"{inside[stop:]}'
