"""Terms that the translation of a segment has to hold, as tokens."""

from collections.abc import Container
from typing import NamedTuple

# The forms that a term may have, each as target ids; one of them is enough.
Term = tuple[tuple[int, ...], ...]


class Constraints(NamedTuple):
    """What every translation of a segment holds, wherever in it: a search with a beam of at least 2 sees to that.

    Attributes:
        terms: at least one; one that is to stand there twice is listed twice. Each has at least one form, and each form
            at least one token, none of them the end-of-sentence token.
        begins_word: tokens before which a word has ended, see `Tokenizer.begins_word`: a term is whole words.
    """

    terms: tuple[Term, ...]
    begins_word: Container[int]

    @property
    def tokens(self) -> int:
        """Tokens that the terms take at most: a limit of target tokens needs room for them beside the other words."""
        return sum(max(map(len, term)) for term in self.terms)
