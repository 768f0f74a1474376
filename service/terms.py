"""Terms that are to have given translations, or none, as a plugin finds them and sees them into translations."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from dragoman.tokenizer import Tokenizer
from service.constraints import Constraints
from service.rewriting import Rewriting, Span

# A character that a model may have no piece for: none of Latin, punctuation, currencies, arrows or mathematics.
MAYBE_UNWRITTEN: Final = re.compile(r"[^\x00-±´¶-¸º»¿-\u017f\u2000-\u206f\u20a0-\u214f\u2190-\u245f\u2500-\u25ff]")

# Finds the characters of the model's translation that became of characters of what it read; None where nothing tells.
Aligned = Callable[[int, int], Span | None]


class TermPlan(Protocol):
    """The plan for the terms of one segment."""

    @property
    def matches(self) -> Sequence[object]:
        """The terms, in their order."""

    @property
    def replaced(self) -> Sequence[Span]:
        """Where in the text those stand that do not stay as they are."""

    @property
    def reading(self) -> Rewriting:
        """From the text to what the model reads."""

    @property
    def is_all(self) -> bool:
        """Whether the text is nothing but one term."""

    @property
    def without_model(self) -> str:
        """The text with its terms, where the model has nothing to translate."""

    @property
    def constraints(self) -> Constraints | None:
        """What the search is made to write; None: nothing."""

    def restore(self, translation: str, aligned: Aligned | None) -> tuple[str, tuple[str, ...], Rewriting]:
        """Put what was kept into a translation, and terms that it lacks.

        Args:
            aligned: None: the model did not tell.

        Returns:
            The translation with its terms, the names of those that it lacks, and what was changed.
        """


class TermPlanner(Protocol):
    """Plans the segments of a text."""

    def read(self, text: str) -> str:
        """Give what the model reads of a text."""

    def spans(self, text: str) -> Iterable[Span]:
        """Find the terms of a text, which belong together."""

    def plan(self, text: str, contents: Sequence[Span] = ()) -> TermPlan | None:
        """Plan a segment.

        Args:
            contents: characters of it that are kept anyway: terms in them have no other form.

        Returns:
            The plan; None where the text has no term.
        """


class Terms(Protocol):
    """What a call wants to have a given translation."""

    def planner(self, stand_ins: Sequence[str], tokenizer: Tokenizer, prefix: str, *, forces: bool) -> TermPlanner:
        """Make what plans the segments of a text.

        Args:
            stand_ins: names that the model copies.
            prefix: what the translation begins with; "" for nothing.
            forces: whether a search may be made to write terms.
        """
