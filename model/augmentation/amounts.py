"""Amounts of money, `$1,234.50` and `1.234,50 $`: a model must learn both ways to write a number."""

import re
from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from model.augmentation.copying import edited
from model.augmentation.spelling import Pair

_SIGNS: Final = "$€£"
_NUMBER: Final = r"(?<![\d.,])(?P<number>(?:\d{{1,3}}(?:{thousands}\d{{3}})+|\d+)(?:{decimal}\d\d)?)(?![\d%]|[.,–-]\d)"
_WITH_POINT: Final = re.compile(rf"[{_SIGNS}] ?" + _NUMBER.format(thousands=",", decimal=r"\."))
_WITH_COMMA: Final = re.compile(rf"(?<![{_SIGNS}–-])(?<![{_SIGNS}] )" + _NUMBER.format(thousands=r"\.", decimal=","))
_FACTOR: Final = re.compile(r"[ -]?(?:thousand|[mbtr]+illion|k\b|m\b|bn?\b)", re.IGNORECASE)
# The sign of `US$` and of `US-$`, which no other sign replaces, is found as two.
_SIGN: Final = re.compile(rf"[{_SIGNS}]|[^\W\d]-?(?=[{_SIGNS}])")
_OTHER_SIGNS: Final = 0.5  # the share of pairs with other signs, where both sides have some
_WITH_DECIMALS: Final = 0.5
_COMMAS_AND_POINTS: Final = str.maketrans(",.", ".,")


class _Amount(NamedTuple):
    """The number of an amount in both sides: the span [start, stop) of each."""

    with_point: tuple[int, int]
    with_comma: tuple[int, int]


def amounts(pair: Pair, random: Random) -> Pair:
    """Change amounts that one side writes as `$1,234.50`, and the other with a comma and the sign behind, or a word.

    A pair keeps its amounts unless each of them is found in both sides.
    """
    for side in (0, 1):
        if found := _found(pair[side], pair[1 - side]):
            with_point, with_comma = _changed(pair[side], pair[1 - side], found, random)
            return (with_point, with_comma) if side == 0 else (with_comma, with_point)
    return pair


def _found(with_point: str, with_comma: str) -> list[_Amount]:
    """Find the amounts of both sides; none if one occurs in one side only, or twice, or has a word such as million."""
    there = [(number["number"], number.span("number")) for number in _WITH_COMMA.finditer(with_comma)]
    found = []
    for amount in _WITH_POINT.finditer(with_point):
        same = [span for number, span in there if number == amount["number"].translate(_COMMAS_AND_POINTS)]
        if len(same) != 1 or _FACTOR.match(with_point, amount.end()):
            return []
        found.append(_Amount(amount.span("number"), same[0]))
    return found if len({amount.with_comma for amount in found}) == len(found) else []


def _changed(with_point: str, with_comma: str, found: Sequence[_Amount], random: Random) -> Pair:
    """Write other numbers, and where both sides have signs, often other signs."""
    numbers = [_number(random) for _ in found]
    sides = with_point, with_comma
    if random.random() < _OTHER_SIGNS and all(len(_SIGN.findall(side)) == len(found) for side in sides):
        others = str.maketrans(_SIGNS, "".join(random.sample(_SIGNS, len(_SIGNS))))
        with_point, with_comma = with_point.translate(others), with_comma.translate(others)
    return edited(with_point, [amount.with_point for amount in found], numbers), edited(
        with_comma,
        [amount.with_comma for amount in found],
        [number.translate(_COMMAS_AND_POINTS) for number in numbers],
    )


def _number(random: Random) -> str:
    """Write a number from 2, of at most six digits, with or without two decimals."""
    whole = random.randrange(2, 10 ** random.randint(1, 6))
    decimals = (
        f".{random.choice((0, 50, 95, 99, random.randrange(100))):02d}" if random.random() < _WITH_DECIMALS else ""
    )
    return f"{whole:,}{decimals}"
