"""Items that a translation copies, put into both sides: in place of shared words, or between words."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final, NamedTuple

from dragoman.clock import TWELVE_HOURS
from model.augmentation import invention
from model.augmentation.spelling import Pair
from model.stand_ins import MOST, STAND_INS

# A word without surrounding punctuation and brackets.
_WORD: Final = re.compile(r"(?<!\S)[\"'(\[„“«]*([^\s\"'(\[„“«](?:\S*[^\s\"')\].,;:!?…”“»])?)[\"')\].,;:!?…”“»]*(?!\S)")
# The first part of a compound of words: getName in getName-Methode, 24 in 24-hour.
_FIRST_PART: Final = re.compile(r"[^\s-]{2,}(?=-[^\W\d_])")
_MARK: Final = re.compile(r"(?<=[^\W_])[,;:.!?](?= )")
_NAMES_BY_NAMES: Final = 0.7  # the share of names that are replaced by names; the others by any item
_OWNER: Final = re.compile(r"\b([^\W\d_]{2,})['’]s\b")
_SIBILANTS: Final = "sxzß"
_END_MARKS: Final = " .!?…:;,"
_IN_FRONT: Final = ("{} ", "{}: ", "{}, ", "({}) ", "- {} ")
_BETWEEN: Final = (" {}", " {}", " ({})")
_BEFORE_STOP: Final = (" {}", " ({})", ": {}", " - {}", ", {}")
_BEHIND: Final = (" {}", " ({})")


class _Place(NamedTuple):
    """A place in both sides: the span [start, stop) of each that an item replaces, and the possible text around it."""

    source: tuple[int, int]
    target: tuple[int, int]
    forms: tuple[str, ...]


class _Word(NamedTuple):
    """A word of a side, its span [start, stop), and whether it is the first."""

    text: str
    span: tuple[int, int]
    is_first: bool


def copies(pair: Pair, random: Random) -> Pair:
    """Put one or two made-up names, addresses, numbers or placeholders into both sides."""
    return _put(pair, _places(pair, random.choice((1, 1, 2)), random), _copied, random)


def names(pair: Pair, random: Random) -> Pair:
    """Replace names before a genitive s, and one or two other items that both sides share, by made-up items."""
    shared = _shared(*pair)
    pair = _put(pair, random.sample(shared, min(len(shared), random.choice((1, 2)))), _copied, random)
    return in_either_order(pair, lambda english, german: _owned_by_others(english, german, random))


def stand_ins(pair: Pair, random: Random) -> Pair:
    """Put 1 to 8 of the stand-ins for protected text into both sides, each once, as the server does."""
    around = " ".join(pair).casefold()
    free = [name for name in STAND_INS if name.casefold() not in around]
    names = random.sample(free, min(len(free), random.randint(1, MOST)))
    return _put(pair, _places(pair, len(names), random), lambda old, random: names.pop(), random)


def _copied(old: str, random: Random) -> str:
    if old.isdecimal():
        return invention.number(random)
    if old.isalpha() and random.random() < _NAMES_BY_NAMES:
        return invention.name(random)
    return invention.copied(random)


def _places(pair: Pair, count: int, random: Random) -> list[_Place]:
    """Choose places: shared words first, then places between words."""
    shared, seams = _shared(*pair), _seams(*pair)
    places = random.sample(shared, min(len(shared), count))
    # Sorted: where a side has no words, several seams are one place.
    return places + [seams[one] for one in sorted(random.choices(range(len(seams)), k=count - len(places)))]


def _put(pair: Pair, places: Sequence[_Place], new: Callable[[str, Random], str], random: Random) -> Pair:
    """Put items into both sides; `new` gives the next item for a replaced word, or for ""."""
    source, target = pair
    things = [random.choice(place.forms).format(new(source[slice(*place.source)], random)) for place in places]
    return _written(source, [place.source for place in places], things), _written(
        target, [place.target for place in places], things
    )


def _written(side: str, spans: Sequence[tuple[int, int]], things: Sequence[str]) -> str:
    """Write items into a side; one of several words gets hyphens as the first part of a compound: Ana-Sol-Straße."""
    written = [
        item.replace(" ", "-") if start < stop and side[stop:].startswith("-") else item
        for item, (start, stop) in zip(things, spans, strict=True)
    ]
    return edited(side, spans, written)


def _shared(source: str, target: str) -> list[_Place]:
    """Find the words that occur exactly once in each side, alone or before a hyphen: names, numbers, addresses."""
    found = [list(_words(source, target)), list(_words(target, source))]
    counts = [Counter(word.text for word in words) for words in found]
    spans = {word.text: word.span for word in found[1]}
    # For a time with a.m. or p.m., the other side may have another hour, or the same hour by chance.
    times = [{time.start() for time in TWELVE_HOURS.finditer(side)} for side in (source, target)]
    return [
        _Place(word.span, spans[word.text], ("{}",))
        for word in found[0]
        if counts[0][word.text] == counts[1][word.text] == 1
        and _is_name(word.text, is_first=word.is_first)
        and word.span[0] not in times[0]
        and spans[word.text][0] not in times[1]
    ]


def _words(side: str, other: str) -> Iterator[_Word]:
    """List the words of a side; of a compound that is not in the other side, the part before its first hyphen."""
    for word in _WORD.finditer(side):
        first = _FIRST_PART.match(word[1])
        text = first[0] if first and word[1] not in other else word[1]
        yield _Word(text, (word.start(1), word.start(1) + len(text)), is_first=word.start() == 0)


def _owned_by_others(english: str, german: str, random: Random) -> Pair | None:
    """Replace the names that stand once in each side, before 's and before s: Tom's, Toms; None if there are none."""
    places = []
    for owner in _OWNER.finditer(english):
        others = list(re.finditer(rf"\b{owner[1]}(?=s\b)", german))
        if len(others) == english.count(owner[1]) == 1 and _is_name(owner[1], is_first=owner.start() == 0):
            places.append(_Place(owner.span(1), others[0].span(), ("{}",)))
    if not places:
        return None
    # A name that ends in a sibilant has another genitive.
    return _put((english, german), places, lambda _, random: invention.name(random).rstrip(_SIBILANTS), random)


def _is_name(word: str, *, is_first: bool) -> bool:
    """Tell whether a shared word is no common word of both languages; 1 is excluded, since it needs the singular."""
    if word.isalpha():
        may_be_common = is_first and word.istitle()
        return len(word) > 1 and not word.islower() and (not may_be_common or invention.is_first_name(word))
    return len(word) > 1 or (word.isdecimal() and word != "1")


def _seams(source: str, target: str) -> list[_Place]:
    """Find places between words: at the start, before inner marks if both sides have the same, at the end."""
    inner = [len(side.rstrip(_END_MARKS)) for side in (source, target)]
    marks = [list(_MARK.finditer(side, 0, stop)) for side, stop in zip((source, target), inner, strict=True)]
    seams = [_at(0, 0, _IN_FRONT), _at(inner[0], inner[1], _BEFORE_STOP), _at(len(source), len(target), _BEHIND)]
    if [mark[0] for mark in marks[0]] == [mark[0] for mark in marks[1]]:
        seams += [_at(one.start(), other.start(), _BETWEEN) for one, other in zip(*marks, strict=True)]
    return seams


def _at(source: int, target: int, forms: tuple[str, ...]) -> _Place:
    return _Place((source, source), (target, target), forms)


def edited(text: str, places: Sequence[tuple[int, int]], things: Sequence[str]) -> str:
    """Write items in place of spans [start, stop) of a text; items of the same place in the given order."""
    edits = sorted(zip(places, range(len(places)), things, strict=True))
    for (start, stop), _, thing in reversed(edits):  # from the end: earlier places stay valid
        text = text[:start] + thing + text[stop:]
    return text


def in_either_order(pair: Pair, change: Callable[[str, str], Pair | None]) -> Pair:
    """Change a pair whose sides write things in two ways, in whichever order the sides are.

    Args:
        change: takes the sides, that of the first way first, and gives both, changed; None if it finds nothing.
    """
    source, target = pair
    if changed := change(source, target):
        return changed
    target, source = change(target, source) or (target, source)
    return source, target
