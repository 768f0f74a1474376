"""The best translations of a text, of the best ones of its segments.

A text of m segments with n hypotheses each has n^m translations. The best n of them begin with the best n of what is in
front of the last segment, whatever that is, so no more than n are kept from one segment to the next.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from service.decode import FinishReason, worst
from service.text.alternatives import Alternative, Choice

# Texts in their order, the last one beside those before it: combinations that begin alike share their beginning.
_Pieces: TypeAlias = "tuple[_Pieces, str] | None"

_Found = TypeVar("_Found", Choice, Alternative)


class _Combination(NamedTuple):
    """One choice for each segment so far."""

    score: float
    log_probability: float
    tokens: int
    finish_reason: FinishReason
    pieces: _Pieces

    def followed_by(self, between: str, choice: Choice) -> "_Combination":
        found = choice.hypothesis
        return _Combination(
            self.score + found.score,
            self.log_probability + found.log_probability,
            self.tokens + found.decoded_tokens,
            worst({self.finish_reason, found.finish_reason}),
            (self.pieces, between + choice.text),
        )

    def ended_by(self, end: str) -> Alternative:
        return Alternative(
            text="".join(_in_order(self.pieces)) + end,
            score=self.score,
            finish_reason=self.finish_reason,
            mean_log_probability=self.log_probability / self.tokens if self.tokens else 0.0,
        )


class Alternatives:
    """The best translations of a text, part by part.

    They take n times the memory of the text, and what each segment adds takes a time that does not depend on those
    before it.
    """

    def __init__(self, count: int) -> None:
        """Begin a text.

        Args:
            count: translations that are wanted, from 1.
        """
        self._count = count
        self._best = [_Combination(0.0, 0.0, 0, FinishReason.EOS, None)]
        self._between: list[str] = []

    def keep(self, text: str) -> None:
        """Add what is the same in all of them."""
        self._between.append(text)

    def add(self, choices: Sequence[Choice]) -> None:
        """Add a segment.

        Args:
            choices: for it, by descending score; at least one. Of those that read the same the first counts.
        """
        choices = _read_once(choices)
        between = "".join(self._between)
        self._between = []
        # The pair (i, j) is no better than each of the (i + 1) * (j + 1) pairs that have none of both larger.
        pairs = [
            (before, choice)
            for place, before in enumerate(self._best)
            for choice in choices[: self._count // (place + 1)]
        ]
        # The order of equals stays: the first combination is that of the first choices, which is the translation.
        pairs.sort(key=lambda pair: pair[0].score + pair[1].hypothesis.score, reverse=True)
        self._best = [before.followed_by(between, choice) for before, choice in pairs[: self._count]]

    def result(self) -> list[Alternative]:
        """Give those of all that was added, by descending score; no two read the same."""
        end = "".join(self._between)
        # Choices that differ can be the same when they are joined: "a" and "ba", "ab" and "a".
        return _read_once(combination.ended_by(end) for combination in self._best)


def _read_once(found: Iterable[_Found]) -> list[_Found]:
    """Leave the first of those that read the same."""
    first: dict[str, _Found] = {}
    for each in found:
        first.setdefault(each.text, each)
    return list(first.values())


def _in_order(pieces: _Pieces) -> list[str]:
    texts = []
    while pieces is not None:
        pieces, text = pieces
        texts.append(text)
    return texts[::-1]
