"""What somebody may have meant by a name that there is not."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_LEAST_ALIKE: Final = 0.75  # one wrong letter of four


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """Ask for the nearest of the names that there are, to be put behind a message; "" where none is near.

    Args:
        name: there is not.
        known: names that there are.
        prefix: that all of them have, and which makes no two alike.
    """
    rests = [each.removeprefix(prefix) for each in known]
    near = get_close_matches(name.removeprefix(prefix), rests, n=1, cutoff=_LEAST_ALIKE)
    return f"; did you mean {prefix}{near[0]}?" if near else ""
