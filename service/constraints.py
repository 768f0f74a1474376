"""Terms that the translation of a segment has to hold, and limits for how often it may hold others, as tokens."""

import math
from collections.abc import Container
from typing import NamedTuple

Form = tuple[int, ...]  # target ids
# The forms that a term may have; one of them is enough.
Term = tuple[Form, ...]


class Constraints(NamedTuple):
    """The terms of the translations of a segment, at any place: a search with a beam of at least 2 puts them there.

    Attributes:
        terms: at least one; a term that has to occur twice is listed twice. Each term has at least one form, and each
            form has at least one token, but not the end-of-sentence token.
        begins_word: tokens before which a word has ended, see `Tokenizer.begins_word`: a term is whole words.
        most_loss: most log-probability that each term may cost the translation. Where all translations with the terms
            lose more, the model cannot use the terms, and makes up text around them; then the best translation that
            lacks some terms is found, too.
        at_most: forms as whole words, each with its largest number of occurrences. Terms go first: a token that
            continues a term that is still missing is allowed in any case.
    """

    terms: tuple[Term, ...]
    begins_word: Container[int]
    most_loss: float = math.inf
    at_most: tuple[tuple[Form, int], ...] = ()

    @property
    def tokens(self) -> int:
        """Most tokens that the terms take: a limit of target tokens needs room for these in addition to other words."""
        return sum(max(map(len, term)) for term in self.terms)
