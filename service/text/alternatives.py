"""The best translations of a text, of the best ones of its segments; a plugin finds them."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from service import plugins
from service.decode import FinishReason, Hypothesis


class Alternative(NamedTuple):
    """One of the best translations of a text.

    Attributes:
        text: with the separators of the source.
        score: the sum of the scores of its segments.
        finish_reason: as that of :class:`TextResult`.
        mean_log_probability: of all its tokens, the end-of-sentence tokens counted, in natural logarithms; 0 without a
            segment.
    """

    text: str
    score: float
    finish_reason: FinishReason
    mean_log_probability: float


class Choice(NamedTuple):
    """One way to translate a segment.

    Attributes:
        text: that it is.
        hypothesis: that it was made of.
    """

    text: str
    hypothesis: Hypothesis


class Alternatives(Protocol):
    """The best translations of a text, part by part."""

    def keep(self, text: str) -> None:
        """Add what is the same in all of them."""

    def add(self, choices: Sequence[Choice]) -> None:
        """Add a segment: choices for it, by descending score; at least one."""

    def result(self) -> list[Alternative]:
        """Give those of all that was added, by descending score."""


def new_alternatives(count: int) -> Alternatives:
    """Begin a text of which so many translations are wanted, from 1; raises InvalidRequestError without a plugin."""
    alternatives: Alternatives = plugins.needed(plugins.ALTERNATIVES, "has no alternatives")(count)
    return alternatives
