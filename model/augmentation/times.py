"""Times with 12 and with 24 hours: a model must learn each pair of hours separately."""

import re
from random import Random
from typing import Final, NamedTuple

from dragoman.clock import NOON, TWELVE_HOURS, in_24_hours
from model.augmentation.copying import edited, in_either_order
from model.augmentation.spelling import Pair

_TWENTY_FOUR_HOURS: Final = re.compile(r"(?<![\d:.,])0?(?P<hour>1?\d|2[0-3])(?P<minutes>[:.][0-5]\d)?(?![\d%]|[:.,]\d)")
# Text before a time that shares its half of the day, "between 7 and" 9 p.m.
_FROM: Final = re.compile(r"\d ?(?:[-–—]|and|to|or|until) ?$")
_HALVES: Final = ((" a.m.", " p.m."), (" a.m.", " p.m."), (" am", " pm"), ("am", "pm"), (" AM", " PM"))
_WITH_MINUTES: Final = 0.6  # the share of new times with minutes
_HOURS: Final = (
    *(("one", "eins"), ("two", "zwei"), ("three", "drei"), ("four", "vier")),
    *(("five", "fünf"), ("six", "sechs"), ("seven", "sieben"), ("eight", "acht")),
    *(("nine", "neun"), ("ten", "zehn"), ("eleven", "elf"), ("twelve", "zwölf")),
)
# German names half an hour by the next hour.
_IN_WORDS: Final = {
    **{f"half past {_HOURS[place - 1][0]}": f"halb {german}" for place, (_, german) in enumerate(_HOURS)},
    **{f"a quarter past {english}": f"Viertel nach {german}" for english, german in _HOURS},
    **{f"a quarter to {english}": f"Viertel vor {german}" for english, german in _HOURS},
}
_ENGLISH_WORDS: Final = re.compile(rf"\b(?:{'|'.join(_IN_WORDS).replace('a quarter', '(?:a )?quarter')})\b", re.I)
_GERMAN_WORDS: Final = re.compile(rf"\b(?:{'|'.join(_IN_WORDS.values())})\b(?! Uhr)", re.I)


class _Time(NamedTuple):
    """A time in both sides: the span [start, stop) of each."""

    twelve: tuple[int, int]
    twenty_four: tuple[int, int]


def times(pair: Pair, random: Random) -> Pair:
    """Change times that one side writes with a.m. or p.m., and the other with 24 hours; and half past two, halb drei.

    A pair keeps its times unless each of them is found in both sides.
    """
    pair = in_either_order(pair, lambda english, german: _in_words(english, german, random))
    return in_either_order(pair, lambda twelve, twenty_four: _changed(twelve, twenty_four, random))


def _in_words(english: str, german: str, random: Random) -> Pair | None:
    """Write another half or quarter of an hour; None if the sides do not have the same one, once."""
    found = [*_ENGLISH_WORDS.finditer(english)], [*_GERMAN_WORDS.finditer(german)]
    if [len(side) for side in found] != [1, 1]:
        return None
    [one], [other] = found
    known = _IN_WORDS[re.sub("^quarter", "a quarter", one[0].lower())]
    if known.lower() != other[0].lower():
        return None
    new, new_german = random.choice(tuple(_IN_WORDS.items()))
    is_first = other.start() == 0 or other[0].startswith("Halb")
    return (
        edited(english, [one.span()], [new.capitalize() if one[0][0].isupper() else new]),
        edited(german, [other.span()], [new_german.capitalize() if is_first else new_german]),
    )


def _found(twelve: str, twenty_four: str) -> list[_Time]:
    """Find the times of both sides; none if a time occurs in one side only, or twice, or shares its half of the day."""
    there = [
        (_whole(time["hour"] + (time["minutes"] or "").replace(".", ":")), time.span())
        for time in _TWENTY_FOUR_HOURS.finditer(twenty_four)
    ]
    found = []
    for time in TWELVE_HOURS.finditer(twelve):
        same = [span for clock, span in there if clock == _whole(in_24_hours(time))]
        if len(same) != 1 or _FROM.search(twelve, 0, time.start()):
            return []
        found.append(_Time(time.span(), same[0]))
    return found if len({time.twenty_four for time in found}) == len(found) else []


def _whole(clock: str) -> str:
    """Write 18:00 as 18."""
    return clock.removesuffix(":00")


def _changed(twelve: str, twenty_four: str, random: Random) -> Pair | None:
    """Write other times, in one style for each side; None if there are none."""
    found = _found(twelve, twenty_four)
    if not found:
        return None
    halves = random.choice(_HALVES)
    new_twelve, new_twenty_four = [], []
    for time in found:
        hour, minute = random.randint(0, 23), random.randrange(0, 60, random.choice((1, 5, 15)))
        minutes = f"{minute:02d}" if random.random() < _WITH_MINUTES else ""
        behind = twelve[time.twelve[1] :]
        is_end = behind[:2].strip().isupper() or (not behind and twenty_four.endswith("."))
        half = halves[hour >= NOON]
        stop = "." if is_end and not half.endswith(".") else ""
        new_twelve.append(f"{(hour - 1) % NOON + 1}{minutes and ':' + minutes}{half}{stop}")
        new_twenty_four.append(f"{hour}{minutes and ':' + minutes}")
    return edited(twelve, [time.twelve for time in found], new_twelve), edited(
        twenty_four, [time.twenty_four for time in found], new_twenty_four
    )
