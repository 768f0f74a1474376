"""Numbers with a decimal point and with a decimal comma: a model must learn both ways to write each number."""

import re
from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from model.augmentation.copying import edited
from model.augmentation.spelling import Pair

_SIGNS: Final = "$€£"
_NUMBER: Final = r"(?<![\w.,])(?P<number>(?:\d{{1,3}}(?:{thousands}\d{{3}})+|\d+)(?:{decimal}\d+)?)(?!\d|[.,–-]\d)"
_WITH_POINT: Final = re.compile(rf"(?P<sign>[{_SIGNS}] ?)?" + _NUMBER.format(thousands=",", decimal=r"\."))
_WITH_COMMA: Final = re.compile(rf"(?<![{_SIGNS}–-])(?<![{_SIGNS}] )" + _NUMBER.format(thousands=r"\.", decimal=","))
_FACTOR: Final = re.compile(r"[ -]?(?:thousand|[mbtr]+illion|k\b|m\b|bn?\b)", re.IGNORECASE)
# The sign of `US$` and of `US-$`, which no other sign replaces, is found as two.
_SIGN: Final = re.compile(rf"[{_SIGNS}]|[^\W\d]-?(?=[{_SIGNS}])")
_OTHER_SIGNS: Final = 0.5  # the share of pairs with other signs, where both sides have some
_WITH_CENTS: Final = 0.5
_COMMAS_AND_POINTS: Final = str.maketrans(",.", ".,")


class _Number(NamedTuple):
    """A number of both sides.

    Attributes:
        new: gives another one, as the side with the point writes it.
        with_point: its span [start, stop) in that side.
        with_comma: the same of the other side.
    """

    new: str
    with_point: tuple[int, int]
    with_comma: tuple[int, int]


def numbers(pair: Pair, random: Random) -> Pair:
    """Change numbers that one side writes as `1,234.5`, and the other as `1.234,5`, and amounts such as `$5` and `5 $`.

    A pair keeps its numbers unless each of them is found in both sides.
    """
    for side in (0, 1):
        if found := _found(pair[side], pair[1 - side], random):
            with_point, with_comma = _changed(pair[side], pair[1 - side], found, random)
            return (with_point, with_comma) if side == 0 else (with_comma, with_point)
    return pair


def _found(with_point: str, with_comma: str, random: Random) -> list[_Number]:
    """Find the numbers of both sides; none if one of them occurs in one side only, or twice."""
    there = [(number["number"], number.span("number")) for number in _WITH_COMMA.finditer(with_comma)]
    found = []
    for number in _WITH_POINT.finditer(with_point):
        if not number["sign"] and number["number"].isdecimal():
            continue
        same = [span for other, span in there if other == number["number"].translate(_COMMAS_AND_POINTS)]
        if len(same) != 1:
            return []
        is_plain = not number["sign"] or _FACTOR.match(with_point, number.end())
        new = _like(number["number"], random) if is_plain else _amount(random)
        found.append(_Number(new, number.span("number"), same[0]))
    return found if len({number.with_comma for number in found}) == len(found) else []


def _changed(with_point: str, with_comma: str, found: Sequence[_Number], random: Random) -> Pair:
    """Write other numbers, and where both sides have signs, often other signs."""
    sides = with_point, with_comma
    signs = sum(bool(number["sign"]) for number in _WITH_POINT.finditer(with_point))
    if random.random() < _OTHER_SIGNS and all(len(_SIGN.findall(side)) == signs for side in sides):
        others = str.maketrans(_SIGNS, "".join(random.sample(_SIGNS, len(_SIGNS))))
        with_point, with_comma = with_point.translate(others), with_comma.translate(others)
    return edited(with_point, [number.with_point for number in found], [number.new for number in found]), edited(
        with_comma,
        [number.with_comma for number in found],
        [number.new.translate(_COMMAS_AND_POINTS) for number in found],
    )


def _like(number: str, random: Random) -> str:
    """Make up a number with as many decimals, and with a separator of thousands if this one has it."""
    whole, point, decimals = number.partition(".")
    low, high = (1000, 10 ** random.randint(4, 8)) if "," in whole else (0 if point else 2, 10 ** random.randint(1, 3))
    return f"{random.randrange(low, high):,}{point}{''.join(random.choices('0123456789', k=len(decimals)))}"


def _amount(random: Random) -> str:
    """Make up an amount from 2, of at most six digits, with or without cents."""
    whole = random.randrange(2, 10 ** random.randint(1, 6))
    cents = f".{random.choice((0, 50, 95, 99, random.randrange(100))):02d}" if random.random() < _WITH_CENTS else ""
    return f"{whole:,}{cents}"
