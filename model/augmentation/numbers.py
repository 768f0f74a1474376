"""Numbers with a decimal point and with a decimal comma: a model must learn both ways to write each number."""

import re
from random import Random
from typing import Final

from model.augmentation.copying import edited, in_either_order
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


def numbers(pair: Pair, random: Random) -> Pair:
    """Change numbers that one side writes as `1,234.5`, and the other as `1.234,5`, and amounts such as `$5` and `5 $`.

    A pair keeps its numbers unless each of them is found in both sides.
    """
    return in_either_order(pair, lambda with_point, with_comma: _changed(with_point, with_comma, random))


def _found(with_point: str, with_comma: str) -> list[tuple[re.Match[str], tuple[int, int]]]:
    """Find the numbers of the side with a point, each with its span in the other side.

    Returns:
        None of them if one occurs in one side only, or twice.
    """
    there = [(number["number"], number.span("number")) for number in _WITH_COMMA.finditer(with_comma)]
    found = []
    for number in _WITH_POINT.finditer(with_point):
        if not number["sign"] and number["number"].isdecimal():
            continue
        same = [span for other, span in there if other == number["number"].translate(_COMMAS_AND_POINTS)]
        if len(same) != 1:
            return []
        found.append((number, same[0]))
    return found if len({span for _, span in found}) == len(found) else []


def _changed(with_point: str, with_comma: str, random: Random) -> Pair | None:
    """Write other numbers, and where both sides have signs, often other signs; None if there are none."""
    found = _found(with_point, with_comma)
    if not found:
        return None
    signs = sum(bool(number["sign"]) for number, _ in found)
    if random.random() < _OTHER_SIGNS and all(len(_SIGN.findall(side)) == signs for side in (with_point, with_comma)):
        others = str.maketrans(_SIGNS, "".join(random.sample(_SIGNS, len(_SIGNS))))
        with_point, with_comma = with_point.translate(others), with_comma.translate(others)
    new = [_new(number, random) for number, _ in found]
    return edited(with_point, [number.span("number") for number, _ in found], new), edited(
        with_comma, [span for _, span in found], [number.translate(_COMMAS_AND_POINTS) for number in new]
    )


def _new(number: re.Match[str], random: Random) -> str:
    """Make up another number, as the side with a point writes it."""
    is_amount = number["sign"] and not _FACTOR.match(number.string, number.end())
    return _amount(random) if is_amount else _like(number["number"], random)


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
