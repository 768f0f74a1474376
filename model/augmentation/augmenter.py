"""Changes pairs of a corpus at given rates."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final, get_args

from model.augmentation import copying, invention, spelling
from model.augmentation.kinds import Kind
from model.augmentation.numbers import numbers
from model.augmentation.spelling import Pair
from model.augmentation.times import times

_SENTENCE_ENDS: Final = (".", "!", "?", "…")
_MOST_WORDS: Final = 22  # the largest source to which others are joined
_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


class Augmenter:
    """Changes pairs by the kinds of augmentation, independently of each other, in the order of `Kind`."""

    def __init__(self, rates: Mapping[Kind, float]) -> None:
        """Set the share of pairs that each kind changes; a missing kind changes none."""
        self._rates = [(kind, rates[kind]) for kind in _KINDS if rates.get(kind)]

    def augment(self, pair: Pair, random: Random, other: Callable[[], Pair]) -> Pair:
        """Change a pair: a pure function of the pair, the state of `random` and the other pairs.

        Args:
            pair: source and target.
            random: decides the changes.
            other: gives another pair of the corpus, to be joined.

        Returns:
            Source and target, neither empty, without new tabs or line ends.
        """
        for kind, rate in self._rates:
            if random.random() < rate:
                pair = _changed(kind, pair, random, other)
        return pair


def _changed(kind: Kind, pair: Pair, random: Random, other: Callable[[], Pair]) -> Pair:
    match kind:
        case "join":
            return _joined(pair, random.choice((1, 1, 2)), other)
        case "no-stop":
            return spelling.without_stop(pair)
        case "typos":
            return spelling.typos(pair, random)
        case "lower":
            return spelling.lower(pair)
        case "title":
            return spelling.title(pair)
        case "caps":
            return spelling.caps(pair)
        case "emoji":
            emoji = invention.emoji(random)
            return f"{pair[0]} {emoji}", f"{pair[1]} {emoji}"
        case "times":
            return times(pair, random)
        case "numbers":
            return numbers(pair, random)
        case "names":
            return copying.names(pair, random)
        case "copies":
            return copying.copies(pair, random)
        case "stand-ins":
            return copying.stand_ins(pair, random)


def _joined(pair: Pair, count: int, other: Callable[[], Pair]) -> Pair:
    """Append other pairs to a pair, while it ends like a sentence and is short."""
    source, target = pair
    for _ in range(count):
        if source.count(" ") >= _MOST_WORDS or not all(side.endswith(_SENTENCE_ENDS) for side in (source, target)):
            break
        more = other()
        source, target = f"{source} {more[0]}", f"{target} {more[1]}"
    return source, target
