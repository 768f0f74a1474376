"""Finds terms with a required translation, and parts to keep, in a text.

A term matches whole words only: no letter, digit or mark may continue at its ends. In scripts without blanks between
words it matches anywhere. At each place the longest term counts, and matches do not overlap.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from dragoman.glossary import GlossaryEntry
from dragoman.scripts import UNSPACED, UNSPACED_CHARACTER
from service.rewriting import Span

# Places where a term may begin, and its key: a word, a character of a script without blanks, or another sign.
_ATOM: Final = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]")
_IN_WORDS: Final = "LMN"  # categories of letters, marks and digits


class Match(NamedTuple):
    """A term, or a part to keep, in a text.

    Attributes:
        start: the start of its characters [start, stop).
        stop: the end of its characters.
        name: its name if it is missing: the source term of the entry, or the text itself.
        forms: the allowed translations.
        kept: whether it stays unchanged: its only form is the text itself.
        whole: whether no word goes on at its ends, unlike in %dMB.
    """

    start: int
    stop: int
    name: str
    forms: tuple[str, ...]
    kept: bool = False
    whole: bool = True


class _Term(NamedTuple):
    source: str
    folded: str  # "" if case matters
    forms: tuple[str, ...]  # without the source term, which may_stay allows
    may_stay: bool

    def begins(self, text: str, start: int) -> bool:
        stop = start + len(self.source)
        if self.folded:
            return text[start:stop].casefold() == self.folded
        return text.startswith(self.source, start)


class Index:
    """The terms of one glossary, with a search time that does not depend on their number."""

    def __init__(self, entries: Iterable[GlossaryEntry]) -> None:
        """Sort the terms by their first atom.

        Args:
            entries: entries with the same source term and case rule become one term with all of their forms.
        """
        forms: dict[tuple[str, bool], dict[str, None]] = {}
        for source, targets, ignore_case in entries:
            forms.setdefault((source, ignore_case), {}).update(dict.fromkeys(targets or ("",)))
        self._terms: dict[str, list[_Term]] = {}
        for (source, ignore_case), found in forms.items():
            folded = source.casefold() if ignore_case else ""
            term = _Term(source, folded, tuple(filter(None, found)), "" in found)
            self._terms.setdefault(_key(source), []).append(term)
        for terms in self._terms.values():
            # Of two equally long terms, the case-sensitive one comes first.
            terms.sort(key=lambda term: (-len(term.source), bool(term.folded)))

    def at(self, text: str, atom: re.Match[str], end: int) -> Match | None:
        """Find the longest term that begins with an atom of a text.

        Args:
            atom: the atom in the text.
            end: the end of the searched part of the text.
        """
        start = atom.start()
        for term in self._terms.get(atom[0].casefold(), ()):
            stop = start + len(term.source)
            if stop <= end and term.begins(text, start) and _is_whole(text, start, stop):
                itself = (text[start:stop],) if term.may_stay else ()
                return Match(start, stop, term.source, term.forms + itself, kept=not term.forms)
        return None


_Finder: TypeAlias = Callable[[str], Iterable[Span]]  # in order, without overlaps


class TermFinder:
    """Finds all terms and kept parts of a call in a text."""

    def __init__(
        self,
        indexes: Sequence[Index] = (),
        kept: _Finder | None = None,
        besides: _Finder | None = None,
        written: Callable[[str], str] = str,
    ) -> None:
        """Combine glossaries.

        Args:
            indexes: the glossaries: at the same place the longest term counts, of equal ones that of the first
                glossary.
            kept: finds parts that stay unchanged; no term overlaps them.
            besides: finds further parts, between all others.
            written: gives the form of such a part in the target language: if it differs, the model reads the part.
        """
        self._indexes = indexes
        self._kept = kept
        self._besides = besides
        self._written = written

    def find(self, text: str) -> Iterator[Match]:
        """Yield the matches in a text, in order and without overlaps."""
        begin = 0
        for match in self._asked(text):
            yield from self._between(text, begin, match.start)
            yield match
            begin = match.stop
        yield from self._between(text, begin, len(text))

    def _between(self, text: str, begin: int, end: int) -> Iterator[Match]:
        if self._besides is not None:
            for start, stop in self._besides(text[begin:end]):
                match = as_it_is(text, begin + start, begin + stop)
                form = self._written(match.name)
                yield match._replace(forms=(form,), kept=form == match.name)

    def _asked(self, text: str) -> Iterator[Match]:
        begin = 0
        for start, stop in () if self._kept is None else self._kept(text):
            yield from self._find(text, begin, start)
            yield as_it_is(text, start, stop)
            begin = stop
        yield from self._find(text, begin, len(text))

    def _find(self, text: str, begin: int, end: int) -> Iterator[Match]:
        if not self._indexes:
            return
        for atom in _ATOM.finditer(text, begin, end):
            if atom.start() < begin:
                continue
            found = [match for index in self._indexes if (match := index.at(text, atom, end))]
            if found:
                match = max(found, key=lambda match: match.stop)
                yield match
                begin = match.stop


def as_it_is(text: str, start: int, stop: int) -> Match:
    """Make the match of a part that stays unchanged."""
    part = text[start:stop]
    return Match(start, stop, part, (part,), kept=True, whole=_is_whole(text, start, stop))


def missing(matches: Iterable[Match], translation: str) -> list[Match]:
    """List the matches without a form in the translation that no other match needs."""
    # Matches with the fewest forms choose first.
    wanted = sorted(matches, key=lambda match: len(match.forms))
    forms = {form for match in wanted for form in match.forms}
    counts = Counter(translation[start:stop] for start, stop in occurrences(forms, translation))
    for part in {match.name for match in wanted if not match.whole}:
        counts[part] = translation.count(part)
    missed = []
    for match in wanted:
        form = next((form for form in match.forms if counts[form]), None)
        if form is None:
            missed.append(match)
        else:
            counts[form] -= 1
    return sorted(missed)


def occurrences(forms: Iterable[str], text: str) -> list[tuple[int, int]]:
    """List the places of forms in a text as whole words: the longest at each place, without overlaps."""
    index = Index(GlossaryEntry(form) for form in forms)
    return [(match.start, match.stop) for match in TermFinder([index]).find(text)]


def _key(source: str) -> str:
    """Give the key of a term: its first atom, case-folded."""
    atom = _ATOM.match(source)
    return atom[0].casefold() if atom else source


def _is_whole(text: str, start: int, stop: int) -> bool:
    return _is_border(text, start) and _is_border(text, stop)


def _is_border(text: str, place: int) -> bool:
    """Tell whether no word crosses a place of a text."""
    if not 0 < place < len(text):
        return True
    before, behind = text[place - 1], text[place]
    if UNSPACED_CHARACTER.match(before) or UNSPACED_CHARACTER.match(behind):
        return True
    return not (in_word(before) and in_word(behind))


def in_word(character: str) -> bool:
    """Tell whether a character is part of a word: a letter, a mark, a digit or an underscore."""
    return character == "_" or unicodedata.category(character)[0] in _IN_WORDS
