"""The best translations of a text, made of the best translations of its segments; a plugin finds them."""

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
        text: the translation.
        hypothesis: the hypothesis that the text was made of.
    """

    text: str
    hypothesis: Hypothesis


class Alternatives(Protocol):
    """The best translations of a text, part by part."""

    def keep(self, text: str) -> None:
        """Add text that is the same in all translations."""

    def add(self, choices: Sequence[Choice]) -> None:
        """Add a segment: choices for it, by descending score; at least one."""

    def result(self) -> list[Alternative]:
        """Give the best translations of all added parts, by descending score."""


def new_alternatives(count: int) -> Alternatives:
    """Begin a text of which `count` translations are wanted, from 1; raises InvalidRequestError without a plugin."""
    alternatives: Alternatives = plugins.needed(plugins.ALTERNATIVES, "has no alternatives")(count)
    return alternatives
