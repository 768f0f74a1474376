"""The progress of a hypothesis with the terms that it must contain.

A term is met when one of its forms stands in the tokens as whole words: all its pieces in order, followed by the end or
by a token before which a word ends. Tokens that begin a form and then differ do no harm: they just do not meet the
term. No token is part of two terms. If tokens can be read as terms in several ways, all readings are kept.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from service.constraints import Constraints, Term

# A reading of the tokens: the met terms, as bits, and the last tokens if they begin or are a form of an unmet term.
# There is always a reading without such last tokens.
_Reading: TypeAlias = tuple[int, tuple[int, ...]]
# Terms with many common forms could be met in too many ways: these are the best readings.
_MOST_READINGS: Final = 32


class Progress:
    """The progress of a sequence of tokens; all hypotheses of a segment with the same progress share one object.

    Attributes:
        met: the number of tokens of met or begun terms; a met term counts with its longest form.
        is_complete: whether all terms are met if the translation ends here.
        wanted: tokens that continue or begin an unmet term; empty once it is complete.
    """

    __slots__ = ("_after", "_inside_word", "_new_word", "_readings", "_terms", "is_complete", "met", "wanted")

    def __init__(self, terms: "Terms", readings: frozenset[_Reading]) -> None:
        """Compute the attributes of some readings."""
        self._terms = terms
        self._readings = readings
        self._after: dict[int, Progress] = {}
        self._inside_word: Progress | None = None
        self._new_word: Progress | None = None
        self.met = max(terms.weight(met) + len(tail) for met, tail in readings)
        self.is_complete = any(terms.all_met in terms.met_at_end(*reading) for reading in readings)
        pieces = {token for reading in readings for token in terms.pieces_behind(*reading)}
        self.wanted = [] if self.is_complete else sorted(pieces)

    def after(self, token: int) -> "Progress":
        """Give the progress after one more token, which is not the end-of-sentence token."""
        if token in self._terms.pieces:
            if token not in self._after:
                self._after[token] = self._terms.progress_after(self._readings, token)
            return self._after[token]
        # All tokens outside of terms have one of two effects.
        if token in self._terms.begins_word:
            if self._new_word is None:
                self._new_word = self._terms.progress_after(self._readings, token)
            return self._new_word
        if self._inside_word is None:
            self._inside_word = self._terms.progress_after(self._readings, token)
        return self._inside_word


class Terms:
    """The terms of one segment.

    Attributes:
        begins_word: see :class:`Constraints`.
        pieces: all tokens of all terms.
        all_met: the bits of all terms.
        start: the progress before the first token.
    """

    def __init__(self, constraints: Constraints) -> None:
        """Prepare the terms of a segment."""
        self._terms = constraints.terms
        self._weights = [max(map(len, term)) for term in constraints.terms]
        self._known: dict[frozenset[_Reading], Progress] = {}
        self.begins_word = constraints.begins_word
        self.pieces = frozenset(id_ for term in constraints.terms for form in term for id_ in form)
        self.all_met = (1 << len(constraints.terms)) - 1
        self.start = self._progress({(0, ())})

    def weight(self, met: int) -> int:
        """Count the tokens of the longest forms of the met terms."""
        return sum(weight for number, weight in enumerate(self._weights) if met >> number & 1)

    def met_at_end(self, met: int, tail: tuple[int, ...]) -> list[int]:
        """List the possible sets of met terms if a word ends after the tail, which may be a form of several terms."""
        return [met | bit for bit, term in self._unmet(met) if tail in term] or [met]

    def next_pieces(self, met: int, tail: tuple[int, ...]) -> set[int]:
        """List the tokens that extend the tail to the beginning of a form, or a whole form, of an unmet term."""
        length = len(tail)
        return {
            form[length]
            for _, term in self._unmet(met)
            for form in term
            if len(form) > length and form[:length] == tail
        }

    def pieces_behind(self, met: int, tail: tuple[int, ...]) -> set[int]:
        """List the tokens that extend the tail or, if the tail is a form, end its word and begin another term."""
        pieces = self.next_pieces(met, tail)
        for after in self.met_at_end(met, tail):
            if after != met:
                pieces |= {token for token in self.next_pieces(after, ()) if token in self.begins_word}
        return pieces

    def progress_after(self, readings: Iterable[_Reading], token: int) -> Progress:
        """Give the progress of some readings after one more token."""
        found: set[_Reading] = set()
        for met, tail in readings:
            if tail and token in self.next_pieces(met, tail):
                found.add((met, (*tail, token)))
            for after in self.met_at_end(met, tail) if token in self.begins_word else [met]:
                found.add((after, ()))
                if token in self.next_pieces(after, ()):
                    found.add((after, (token,)))
        return self._progress(found)

    def _unmet(self, met: int) -> Iterator[tuple[int, Term]]:
        """List the unmet terms, each with its bit; of equal terms only the first."""
        seen: set[Term] = set()
        for number, term in enumerate(self._terms):
            if not met >> number & 1 and term not in seen:
                seen.add(term)
                yield 1 << number, term

    def _progress(self, readings: set[_Reading]) -> Progress:
        """Give the progress of readings; drops readings that have met fewer terms than another with the same tail."""
        kept = frozenset(
            (met, tail)
            for met, tail in readings
            if not any(other != met and other & met == met for other, same in readings if same == tail)
        )
        if len(kept) > _MOST_READINGS:
            order = sorted(kept, key=lambda each: (-self.weight(each[0]) - len(each[1]), each))
            without_tail = next(each for each in order if not each[1])
            kept = frozenset([*order[:_MOST_READINGS], without_tail])
        if kept not in self._known:
            self._known[kept] = Progress(self, kept)
        return self._known[kept]
