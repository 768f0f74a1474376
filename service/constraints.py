"""Terms that the translation of a segment has to hold, and how often it may hold others, as tokens."""

import math
from collections.abc import Container
from typing import NamedTuple

Form = tuple[int, ...]  # target ids
# The forms that a term may have; one of them is enough.
Term = tuple[Form, ...]


class Constraints(NamedTuple):
    """What the translations of a segment hold, wherever in them: a search with a beam of at least 2 sees to that.

    Attributes:
        terms: at least one; one that is to stand there twice is listed twice. Each has at least one form, and each form
            at least one token, none of them the end-of-sentence token.
        begins_word: tokens before which a word has ended, see `Tokenizer.begins_word`: a term is whole words.
        most_loss: how much each term may take from the log-probability of the translation. Where all that hold the
            terms lose more, the model does not know what to do with them, and makes up text around them; then the
            best translation that lacks some is found as well.
        at_most: forms that are to stand there as whole words, and no more often than this. They give way to terms: what
            leads on to one that is not met may follow in any case.
    """

    terms: tuple[Term, ...]
    begins_word: Container[int]
    most_loss: float = math.inf
    at_most: tuple[tuple[Form, int], ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens that the terms take at most: a limit of target tokens needs room for them beside the other words."""
        return sum(max(map(len, term)) for term in self.terms)
