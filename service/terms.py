"""Terms that have given translations, or stay as they are; a plugin finds them and puts them into translations."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from dragoman.tokenizer import Tokenizer
from service.constraints import Constraints
from service.rewriting import Rewriting, Span

# A character that a model may have no piece for, or too rarely read: not Latin, punctuation, common signs and arrows,
# but letters whose last byte few others have.
MAYBE_UNWRITTEN: Final = re.compile(
    r"[òõùþÿċĕįĵķľŋŕůŵŷžĳŀŉſ]|[^\x00-{}-¥§©-\xad\xb0\xb1´º»\xc0-\xf6\xf8-\u017f\u2000-\u2014\u2018-\u202f‹›\u205f-\u206f€"
    r"\u2100-\u2121\u2123-\u214f←-↔−≈≠≤≥]"
)
MAYBE_LITERAL: Final = re.compile(r"[@_#]|://|\.[a-z]|[a-z][A-Z]|[A-Z]\d|\d[A-Za-z]|[\d.,]\d{3}[\d.,]|`|\(\)|\B-\S")

# Finds the characters of the model's translation that characters of its source became; None where it is not known.
Aligned = Callable[[int, int], Span | None]


class TermPlan(Protocol):
    """The plan for the terms of one segment."""

    @property
    def matches(self) -> Sequence[object]:
        """The terms, in their order."""

    @property
    def replaced(self) -> Sequence[Span]:
        """The places in the text of the terms that do not stay as they are."""

    @property
    def reading(self) -> Rewriting:
        """The rewriting of the text to the text that the model reads."""

    @property
    def is_all(self) -> bool:
        """Whether the model has nothing to translate: the text is one term, or kept parts and punctuation."""

    @property
    def without_model(self) -> str:
        """The text with its terms, for a text in which the model has nothing to translate."""

    @property
    def constraints(self) -> Constraints | None:
        """The terms that the search must write; None: none."""

    def restore(self, translation: str, aligned: Aligned | None) -> tuple[str, tuple[str, ...], Rewriting]:
        """Put kept words into a translation, and terms that it lacks.

        Args:
            aligned: finds the characters of the translation; None: there is no alignment.

        Returns:
            The translation with its terms, the names of the terms that it lacks, and the rewriting.
        """


class TermPlanner(Protocol):
    """Plans the segments of a text."""

    def read(self, text: str) -> str:
        """Give the text that the model reads in place of a text."""

    def spans(self, text: str) -> Iterable[Span]:
        """Find the terms of a text, which must not be split."""

    def plan(self, text: str, contents: Sequence[Span] = ()) -> TermPlan | None:
        """Plan a segment.

        Args:
            contents: the content of kept elements, in order; it stays as it is.

        Returns:
            The plan; None where the text has no term.
        """


class Terms(Protocol):
    """The terms of a call that have given translations."""

    def planner(self, stand_ins: Sequence[str], tokenizer: Tokenizer, prefix: str, *, forces: bool) -> TermPlanner:
        """Make the planner of the segments of a text.

        Args:
            stand_ins: names that the model copies.
            prefix: the first text of the translation; "" for none.
            forces: whether a search may be forced to write terms.
        """
