"""Suggestions for misspelt names."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_LEAST_ALIKE: Final = 0.75  # one wrong letter in four


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Suggest the most similar existing name, as the end of a message; "" if no name is similar.

    Args:
        name: the unknown name.
        known: the existing names.
        prefix: a prefix of all names, which does not count for the similarity.
    """
    rests = [each.removeprefix(prefix) for each in known]
    near = get_close_matches(name.removeprefix(prefix), rests, n=1, cutoff=_LEAST_ALIKE)
    return f"; did you mean {prefix}{near[0]}?" if near else ""
