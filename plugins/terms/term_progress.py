"""How far a hypothesis is with the terms that it has to hold.

A term is met where one of its forms stands in the tokens as whole words: all its pieces in order, and behind them the
end, or a token before which a word has ended. Tokens that begin a form and go on otherwise do no harm: the term is just
not met by them. No token is part of two terms. Where tokens can be read as terms in several ways, all are kept.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from service.constraints import Constraints, Term

# A way to read the tokens so far: the terms that are met, a bit each, and the last tokens where they are the begin, or
# all, of a form of a term that is not met. There is always one without such tokens.
_Reading: TypeAlias = tuple[int, tuple[int, ...]]
# Terms with many forms in common could be met in more ways than can be kept: these are the best.
_MOST_READINGS: Final = 32


class Progress:
    """How far tokens have come; one object for all hypotheses of a segment that are equally far.

    Attributes:
        met: tokens of terms that are met or begun; of a term that is met, those of its longest form.
        is_complete: whether all terms are met if the translation ends here.
        wanted: tokens that lead on to a term that is not met; none once it is complete.
    """

    __slots__ = ("_after", "_inside_word", "_new_word", "_readings", "_terms", "is_complete", "met", "wanted")

    def __init__(self, terms: "Terms", readings: frozenset[_Reading]) -> None:
        """Describe some readings."""
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
        """Give the progress with one more token, which is not the end."""
        if token in self._terms.pieces:
            if token not in self._after:
                self._after[token] = self._terms.progress_after(self._readings, token)
            return self._after[token]
        # All other tokens have one of two effects.
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
        """Count the tokens of the longest forms of terms that are met."""
        return sum(weight for number, weight in enumerate(self._weights) if met >> number & 1)

    def met_at_end(self, met: int, tail: tuple[int, ...]) -> list[int]:
        """List what may be met where a word ends behind the tail, which may be a form of several terms."""
        return [met | bit for bit, term in self._unmet(met) if tail in term] or [met]

    def next_pieces(self, met: int, tail: tuple[int, ...]) -> set[int]:
        """List the tokens with which the tail is still the begin, or all, of a form of a term that is not met."""
        length = len(tail)
        return {
            form[length]
            for _, term in self._unmet(met)
            for form in term
            if len(form) > length and form[:length] == tail
        }

    def pieces_behind(self, met: int, tail: tuple[int, ...]) -> set[int]:
        """List the tokens that go on with the tail or, where it is a form, end its word and begin another term."""
        pieces = self.next_pieces(met, tail)
        for after in self.met_at_end(met, tail):
            if after != met:
                pieces |= {token for token in self.next_pieces(after, ()) if token in self.begins_word}
        return pieces

    def progress_after(self, readings: Iterable[_Reading], token: int) -> Progress:
        """Give the progress of some readings with one more token."""
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
        """List the terms that are not met, each with its bit; of equal ones the first."""
        seen: set[Term] = set()
        for number, term in enumerate(self._terms):
            if not met >> number & 1 and term not in seen:
                seen.add(term)
                yield 1 << number, term

    def _progress(self, readings: set[_Reading]) -> Progress:
        """Give the progress of readings; without those that have met less than another of the same tail."""
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
