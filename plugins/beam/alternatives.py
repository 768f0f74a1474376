"""The best translations of a text, combined from the best translations of its segments.

A text of m segments with n hypotheses each has n^m translations. Each of the n best begins with one of the n best
combinations for the earlier segments, so only n combinations are kept from one segment to the next.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from service.decode import FinishReason, worst
from service.text.alternatives import Alternative, Choice

# A linked list of texts, the last one outermost: combinations with the same beginning share it.
_Pieces: TypeAlias = "tuple[_Pieces, str] | None"

_Found = TypeVar("_Found", Choice, Alternative)


class _Combination(NamedTuple):
    """One choice for each segment up to here."""

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
    """The best translations of a text, built part by part.

    They take n times the memory of the text; the time to add a segment does not depend on earlier segments.
    """

    def __init__(self, count: int) -> None:
        """Begin a text.

        Args:
            count: the number of translations to find, from 1.
        """
        self._count = count
        self._best = [_Combination(0.0, 0.0, 0, FinishReason.EOS, None)]
        self._between: list[str] = []

    def keep(self, text: str) -> None:
        """Add text that is the same in all translations."""
        self._between.append(text)

    def add(self, choices: Sequence[Choice]) -> None:
        """Add a segment.

        Args:
            choices: the choices for the segment, by descending score; at least one. Of choices with equal text, the
                first counts.
        """
        choices = _read_once(choices)
        between = "".join(self._between)
        self._between = []
        # The pair (i, j) is no better than any of the (i + 1) * (j + 1) pairs whose indices are both not larger.
        pairs = [
            (before, choice)
            for place, before in enumerate(self._best)
            for choice in choices[: self._count // (place + 1)]
        ]
        # A stable sort: the first combination has all first choices, and is the translation itself.
        pairs.sort(key=lambda pair: pair[0].score + pair[1].hypothesis.score, reverse=True)
        self._best = [before.followed_by(between, choice) for before, choice in pairs[: self._count]]

    def result(self) -> list[Alternative]:
        """Give the translations of all added parts, by descending score; no two have the same text."""
        end = "".join(self._between)
        # Different choices can give the same text: "a" + "ba" and "ab" + "a".
        return _read_once(combination.ended_by(end) for combination in self._best)


def _read_once(found: Iterable[_Found]) -> list[_Found]:
    """Keep the first item of each text."""
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
