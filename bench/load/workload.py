"""The texts that a load test sends, drawn before it starts: lengths, repetitions, priorities. Pure, with seeds."""

from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

MAX_WORDS = 10_000
# How many texts are asked for again and again: this number, and at most every second one there is.
POPULAR_TEXTS = 1000

_KINDS: dict[str, int] = {"fixed": 1, "uniform": 2, "lognormal": 2}


@dataclass(frozen=True)
class WordCounts:
    """How many words a text has.

    Attributes:
        kind: `fixed`: always `first`; `uniform`: from `first` to `second`, all alike; `lognormal`: half below
            `first`, with `second` the standard deviation of the logarithm.
    """

    kind: Literal["fixed", "uniform", "lognormal"]
    first: float
    second: float = 0.0

    @classmethod
    def parse(cls, text: str) -> "WordCounts":
        """Read `fixed:N`, `uniform:LOW:HIGH` or `lognormal:MEDIAN:SIGMA`.

        Raises:
            ArgumentTypeError: it is something else; the message says in one line what there is.
        """
        kind, *numbers = text.split(":")
        try:
            values = [float(number) for number in numbers]
        except ValueError:
            values = []
        if len(values) != _KINDS.get(kind) or not 1 <= values[0] <= MAX_WORDS:
            raise ArgumentTypeError(
                f"{text!r} is none of fixed:N, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA, of 1 to {MAX_WORDS} words"
            )
        if kind == "uniform" and not values[0] <= values[1] <= MAX_WORDS:
            raise ArgumentTypeError(f"uniform:LOW:HIGH must have LOW <= HIGH <= {MAX_WORDS}, not {text}")
        if kind == "lognormal" and not 0 <= values[1] <= 5:
            raise ArgumentTypeError(f"lognormal:MEDIAN:SIGMA must have SIGMA from 0 to 5, not {text}")
        return cls(kind, *values)  # type: ignore[arg-type]  # one of _KINDS

    def __str__(self) -> str:
        return ":".join([self.kind, *(f"{number:g}" for number in (self.first, self.second)[: _KINDS[self.kind]])])

    def draw(self, count: int, seed: int) -> NDArray[np.int64]:
        """Draw [count] numbers of words, each from 1 to MAX_WORDS."""
        random = np.random.default_rng(seed)
        match self.kind:
            case "fixed":
                words = np.full(count, self.first)
            case "uniform":
                words = random.uniform(self.first - 0.5, self.second + 0.5, count)
            case "lognormal":
                words = random.lognormal(np.log(self.first), self.second, count)
        whole: NDArray[np.int64] = np.clip(np.rint(words), 1, MAX_WORDS).astype(np.int64)
        return whole


def texts_of_lengths(texts: Sequence[str], words: NDArray[np.int64], seed: int) -> list[str]:
    """Make texts of given lengths: each begins where a text of the file begins, and goes on through the next ones.

    Args:
        words: [drawn] how many words each has.
    """
    split = [text.split() for text in texts]
    begins = np.concatenate([[0], np.cumsum([len(part) for part in split])])[:-1]
    every = [word for part in split for word in part]
    chosen = np.random.default_rng(seed).choice(begins, len(words))
    return [
        " ".join(every[(begin + index) % len(every)] for index in range(length))
        for begin, length in zip(chosen.tolist(), words.tolist(), strict=True)
    ]


def zipf_weights(count: int, exponent: float) -> NDArray[np.float64]:
    """Return [count] how often each text is asked for, that of rank k in proportion to k ** -exponent; the sum is 1."""
    weights: NDArray[np.float64] = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    weights /= weights.sum()
    return weights


def repeated(texts: int, count: int, share: float, exponent: float, seed: int) -> NDArray[np.int64]:
    """Choose the text of each draw: some are asked for again and again, the others in turn.

    Args:
        texts: how many there are; the first of them, POPULAR_TEXTS or half, are the popular ones.

    Returns:
        [count] indices of texts.
    """
    random = np.random.default_rng(seed)
    popular = max(1, min(POPULAR_TEXTS, texts // 2))
    drawn = random.choice(popular, count, p=zipf_weights(popular, exponent))
    rare = random.random(count) >= share
    in_turn = np.arange(int(rare.sum()), dtype=np.int64)
    # A single text is popular and all the others as well.
    drawn[rare] = popular + in_turn % (texts - popular) if texts > popular else 0
    return drawn


def bulk_requests(requests: int, share: float, seed: int) -> frozenset[int]:
    """Choose the requests of the priority bulk, each with the probability `share`; gives their numbers."""
    chosen = np.random.default_rng(seed).random(requests) < share
    return frozenset(np.flatnonzero(chosen).tolist())
