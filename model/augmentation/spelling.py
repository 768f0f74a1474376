"""Text as people type it: without the final stop, with errors, in other letter case."""

import re
from collections.abc import Callable
from random import Random
from typing import Final

Pair = tuple[str, str]

# Text for programs keeps its case: placeholders, addresses, paths.
_WORD_OF_TEXT: Final = re.compile(r"(?<!\S)[^\s{}<>%$@/\\_]+(?!\S)")
_LETTERS: Final = re.compile(r"(?<!\S)[^\W\d_]{4,}(?![^\s,;:.!?])")
_LONG: Final = 12  # from this number of words on, a second error
_FREQUENT: Final = "etaoinshr"


def without_stop(pair: Pair) -> Pair:
    """Remove the final stop of both sides, if both have one with text before it."""
    source, target = pair
    if all(side.endswith(".") and side.rstrip(". ") for side in pair):
        return source.rstrip(". "), target.rstrip(". ")
    return pair


def lower(pair: Pair) -> Pair:
    """Write the source in lower case."""
    return _changed(pair[0], str.lower), pair[1]


def title(pair: Pair) -> Pair:
    """Capitalise every word of the source."""
    return _changed(pair[0], lambda word: word[:1].upper() + word[1:]), pair[1]


def caps(pair: Pair) -> Pair:
    """Write both sides in capitals, with ß as SS."""
    return _changed(pair[0], str.upper), _changed(pair[1], str.upper)


def _changed(text: str, change: Callable[[str], str]) -> str:
    return _WORD_OF_TEXT.sub(lambda word: change(word[0]), text)


def typos(pair: Pair, random: Random) -> Pair:
    """Make an error in a word of the source, in two words if it is long; none in words that the target has too."""
    source, target = pair
    copied = set(re.findall(r"\w+", target))
    words = [word for word in _LETTERS.finditer(source) if word[0] not in copied]
    for word in sorted(random.sample(words, min(len(words), 1 + (source.count(" ") >= _LONG))), key=_backwards):
        source = source[: word.start()] + _misspelt(word[0], random) + source[word.end() :]
    return source, target


def _backwards(word: re.Match[str]) -> int:
    return -word.start()


def _misspelt(word: str, random: Random) -> str:
    """Swap two letters, or omit, double or replace one; never the first."""
    place = random.randrange(1, len(word) - 1)
    before, letter, behind = word[:place], word[place], word[place + 1 :]
    kind = random.random()
    if kind < 0.35:
        return before + behind[0] + letter + behind[1:]
    if kind < 0.65:
        return before + behind
    if kind < 0.8:
        return before + letter + letter + behind
    return before + random.choice(_FREQUENT) + behind
