"""The terms of one segment: how they get into its translation, and the check that they are in it.

The model does not read parts that stay unchanged: it reads a stand-in for each, a name that it is known to copy, which
is replaced in the translation. The search is made to write stand-ins, and the forms of other terms, if the model has
pieces for them. Surplus stand-ins are removed, and so are kept parts that the model itself wrote too often. Missing
terms replace the words aligned with them; a missing kept part is added in any case. The resulting text is searched for
all terms, so that every missing term is reported.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from dragoman.scripts import UNSPACED_CHARACTER
from dragoman.tokenizer import Tokenizer
from plugins.terms.finding import Match, TermFinder, as_it_is, missing, occurrences
from service.constraints import Constraints, Term
from service.rewriting import Edit, Rewriting, Span
from service.terms import Aligned

# More terms make a search slower and translations worse; further terms replace the words aligned with them.
MOST_FORCED: Final = 4
# The largest loss of log-probability (natural logarithm) for a term. Measured: terms of references usually cost 2, and
# 8 at most; terms that do not fit cost 10 to 20, and translations with them are worse than none.
_MOST_LOSS: Final = 8.0
# Longer forms, such as addresses, take more steps than the rest of the sentence.
_MOST_FORM_TOKENS: Final = 24
# Letters of an inflected ending that a name may get, as in Tom's or Toms.
_MOST_ENDING: Final = 2


@lru_cache(256)
def _names(names: tuple[str, ...]) -> re.Pattern[str]:
    """Make the pattern of names, with such endings."""
    found = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{found})(?=\w{{0,{_MOST_ENDING}}}(?!\w))")


_ENDS: Final = " .!?…。！？"  # characters at the end of a sentence
_JOINING: Final = re.compile(r"[!#$%&*+,./:;=?@\\^_|~-]*")  # characters between kept parts that the model might change
_WORDS: Final = re.compile(r"\w(?:.*\w)?", re.DOTALL)  # of a term, without the signs at its ends
_QUOTES: Final = frozenset("\"'“”„‟‘’‚‛«»‹›")


class Restored(NamedTuple):
    """A translation with its terms.

    Attributes:
        text: the translation.
        misses: the names of the terms that it lacks, in the order of the text.
        rewriting: maps the model's output to this text.
    """

    text: str
    misses: tuple[str, ...]
    rewriting: Rewriting


class TermPlan(NamedTuple):
    """The plan for the terms of one segment.

    Attributes:
        text: the text of the segment.
        matches: the terms in it, in order.
        stand_ins: for each match, the stand-in that the model reads; "": the match itself.
        reading: maps the text to the model's input.
        constraints: the terms that the search must write; None: none.
        prefix: the required beginning of the translation, which is not changed if it is there.
    """

    text: str
    matches: tuple[Match, ...]
    stand_ins: tuple[str, ...]
    reading: Rewriting
    constraints: Constraints | None
    prefix: str = ""

    @property
    def replaced(self) -> Sequence[Span]:
        """The spans of the terms that do not stay unchanged."""
        return [(match.start, match.stop) for match in self.matches if not match.kept]

    @property
    def is_all(self) -> bool:
        """Whether the model has nothing to translate: the text is a single term, or kept parts and punctuation."""
        if (self.matches[0].start, self.matches[0].stop) == (0, len(self.text)):
            return True
        rest = Rewriting(self.text, [Edit(match.start, match.stop, "") for match in self.matches]).text
        return all(match.kept for match in self.matches) and _is_signs(rest)

    @property
    def without_model(self) -> str:
        """The text with its terms replaced, if the model has nothing to translate."""
        return Rewriting(self.text, [Edit(match.start, match.stop, match.forms[0]) for match in self.matches]).text

    @property
    def _kept(self) -> dict[str, None]:
        """The terms that stay unchanged, without duplicates."""
        return dict.fromkeys(match.forms[0] for match in self.matches if match.kept)

    def restore(self, translation: str, aligned: Aligned | None) -> Restored:
        """Put kept parts and missing terms into a translation.

        Args:
            aligned: the word alignment; None: unknown.
        """
        edits = list(self._put_back(translation, aligned))
        rewriting = Rewriting(translation, edits)
        missed = self._missed(rewriting.text)
        if missed and aligned is not None:
            replacing = list(self._replacing(missed, rewriting, edits, aligned))
            # A stand-in inside a replaced word had an ending, so its kept part counted as missing.
            left = [edit for edit in edits if not any(_overlap(edit, other) for other in replacing)]
            edits = sorted([*left, *replacing])
            rewriting = Rewriting(translation, edits)
            missed = self._missed(rewriting.text)
        surplus = self._surplus(rewriting, edits, aligned)
        if surplus:
            edits = sorted([*edits, *_taken_out(surplus, edits, translation)])
            rewriting = Rewriting(translation, edits)
            missed = self._missed(rewriting.text)
        lost = [match for match in missed if match.kept]
        if lost:
            rewriting = Rewriting(translation, self._added(lost, edits, translation, aligned))
            missed = self._missed(rewriting.text)
        rewriting.kept = self._places(rewriting.text)
        return Restored(rewriting.text, tuple(dict.fromkeys(match.name for match in missed)), rewriting)

    def _places(self, translation: str) -> list[Span]:
        """List the spans of kept parts in a translation."""
        inside = {match.name for match in self.matches if match.kept and not match.whole}
        found = [each.span() for part in inside for each in re.finditer(re.escape(part), translation)]
        return sorted([*found, *occurrences(self._kept, translation)])

    def _begin(self, translation: str) -> int:
        """Tell where a translation may be changed: behind its prefix, if that is there."""
        return len(self.prefix) if translation.startswith(self.prefix) else 0

    def _missed(self, translation: str) -> list[Match]:
        """List the missing terms; one at the end of the prefix is there, though the model may go on with its word."""
        missed, begin = missing(self.matches, translation), self._begin(translation)
        if missed and begin:
            missed = min(missed, missing(self.matches, f"{translation[:begin]} {translation[begin:]}"), key=len)
        return missed

    def _put_back(self, translation: str, aligned: Aligned | None) -> Iterator[Edit]:
        """Yield the edits that replace stand-ins by the kept parts, and remove surplus stand-ins."""
        pairs = zip(self.matches, self.stand_ins, strict=True)
        kept = {stand_in: match.forms[0] for match, stand_in in pairs if stand_in}
        if not kept:
            return
        touching = self._touching()
        done = self._begin(translation)
        found = list(_names(tuple(kept)).finditer(translation, done))
        wanted = [name for stand_in in kept for name in self._wanted(stand_in, found, aligned)]
        for name in found:
            start, stop = name.span()
            if name in wanted:
                before, behind = touching[name[0]]
                if start > done and translation[start - 1] == " " and _before(translation, start - 1) in before:
                    start -= 1
                if translation.startswith(" ", stop) and _behind(translation, stop + 1) in behind:
                    stop += 1
                yield Edit(start, stop, kept[name[0]])
            else:
                start, stop = _with_blank(translation, max(done, start), _word_end(translation, stop), done)
                yield Edit(start, stop, "")
            done = stop

    def _touching(self) -> dict[str, tuple[set[str], set[str]]]:
        """Give the words and signs that touch the kept parts of each stand-in, before them and behind them.

        Of quotation marks, all: the model writes those of the other language.
        """
        touching: dict[str, tuple[set[str], set[str]]] = {}
        done = 0
        for match, stand_in in zip(self.matches, self.stand_ins, strict=True):
            before, behind = touching.setdefault(stand_in, (set(), set()))
            before |= {_before(self.text, match.start, done)} - {""}
            behind |= {_behind(self.text, match.stop)} - {""}
            if not before.isdisjoint(_QUOTES):
                before |= _QUOTES
            done = match.stop
        return touching

    def _wanted(self, stand_in: str, found: Sequence[re.Match[str]], aligned: Aligned | None) -> list[re.Match[str]]:
        """Choose the places of a stand-in to use: as many as in the model's input, aligned places first."""
        places = [name for name in found if name[0] == stand_in]
        own = [match for match, name in zip(self.matches, self.stand_ins, strict=True) if name == stand_in]
        count = len(missing(own, self.prefix))  # the prefix may contain a kept part
        if len(places) <= count:
            return places
        spans = [aligned(*self.reading.after((match.start, match.stop))) for match in own] if aligned else []

        def rank(name: re.Match[str]) -> tuple[bool, bool]:
            is_aligned = any(span is not None and _overlap(span, name.span()) for span in spans)
            return _word_end(name.string, name.end()) > name.end(), not is_aligned

        return sorted(places, key=rank)[:count]

    def _replacing(
        self, missed: Iterable[Match], rewriting: Rewriting, edits: Iterable[Edit], aligned: Aligned
    ) -> Iterator[Edit]:
        """Yield edits that replace the words aligned with missing terms, unless those words are terms themselves.

        Of a kept part, a stand-in with an ending is replaced first, wherever it is: otherwise the part would be twice.
        """
        taken = self._taken(rewriting)
        ends = [(edit, _word_end(rewriting.original, edit.stop)) for edit in edits]
        ended = [Edit(edit.start, end, edit.new) for edit, end in ends if end > edit.stop]
        for match in missed:
            own = next((edit for edit in ended if match.kept and edit.new == match.forms[0]), None)
            if own is not None:
                ended.remove(own)
            span = (own.start, own.stop) if own else aligned(*self.reading.after((match.start, match.stop)))
            if span is not None and own is None:
                span = _with_signs(rewriting.original, span, self.text[match.start : match.stop])
            if span is not None and not any(_overlap(span, other) for other in taken):
                taken.append(span)
                yield Edit(*span, match.forms[0])

    def _taken(self, rewriting: Rewriting) -> list[Span]:
        """List the spans of the model's output that stay: terms, and the prefix."""
        forms = [form for match in self.matches for form in match.forms]
        taken = [rewriting.before(span) for span in occurrences(forms, rewriting.text)]
        return [*taken, (0, self._begin(rewriting.original))]

    def _surplus(self, rewriting: Rewriting, edits: Iterable[Edit], aligned: Aligned | None) -> list[Span]:
        """List the spans where the model itself wrote a kept part too often; aligned ones are the last to go."""
        kept = [form for form in self._kept if len(form) > 1 or form.isalnum()]  # a full stop may be the sentence's
        left = Counter(rewriting.text[start:stop] for start, stop in occurrences(kept, rewriting.text))
        left.subtract(form for match in self.matches for form in match.forms if form in kept)
        if not any(count > 0 for count in left.values()):
            return []
        translation = rewriting.original
        begin = self._begin(translation)
        reads = [aligned(*self.reading.after((match.start, match.stop))) for match in self.matches] if aligned else []

        def rank(span: Span) -> tuple[bool, int]:
            return any(read and _overlap(span, read) for read in reads), -span[0]

        surplus = []
        for span in sorted((span for span in occurrences(kept, translation) if span[0] >= begin), key=rank):
            form = translation[slice(*span)]
            if left[form] > 0 and not any(_overlap(span, edit) for edit in edits):
                surplus.append(span)
                left[form] -= 1
        return sorted(surplus)

    def _added(
        self, lost: Iterable[Match], edits: Iterable[Edit], translation: str, aligned: Aligned | None
    ) -> list[Edit]:
        """Add lost kept parts after the aligned word; without an alignment, at the end of the sentence."""
        added = list(edits)
        whole = occurrences(self._kept, translation)
        begin = self._begin(translation)
        begin += len(_behind(translation, begin)) if begin else 0  # the word that the model goes on with
        for match in lost:
            span = aligned(*self.reading.after((match.start, match.stop))) if aligned else None
            place = max(begin, span[1] if span else len(translation.rstrip(_ENDS)) or len(translation))
            place = next((stop for start, stop in whole if start < place < stop), place)
            own = next((edit for edit in added if edit.start < place <= edit.stop or not translation), None)
            if own is None:
                start = max(0, place - 1)
                own = Edit(start, place, translation[start:place])
            else:
                added.remove(own)
            text = f"{own.new} {match.forms[0]}".strip()
            behind = " " if _word_end(translation, own.stop) > own.stop else ""
            added = sorted([*added, own._replace(new=text + behind)])
        return added


def _is_signs(text: str) -> bool:
    """Tell whether a text is punctuation that languages share."""
    return text.isascii() and not any(map(str.isalnum, text))


def _with_contents(text: str, matches: Iterable[Match], contents: Iterable[Span]) -> list[Match]:
    """Add the contents of kept elements, in place of terms that overlap them."""
    kept = [as_it_is(text, *span) for span in contents]
    free = [match for match in matches if not any(match.start < one.stop and one.start < match.stop for one in kept)]
    return sorted([*free, *kept])


def _joined(text: str, matches: Iterable[Match]) -> Iterator[Match]:
    """Join kept parts with nothing but signs between them, as in %d/%d."""
    last: Match | None = None
    for match in matches:
        between = text[last.stop : match.start] if last else " "
        if last and last.kept and match.kept and _JOINING.fullmatch(between):
            last = as_it_is(text, last.start, match.stop)
            continue
        if last:
            yield last
        last = match
    if last:
        yield last


def _padded(text: str, match: Match, name: str) -> str:
    """Put blanks around a stand-in that would touch other characters: its pieces would be others."""
    before = " " if _before(text, match.start) else ""
    behind = " " if _behind(text, match.stop) else ""
    return f"{before}{name}{behind}"


def _before(text: str, place: int, done: int = 0) -> str:
    """Give the word between two places, or the sign before the last; "" in scripts without blanks between words."""
    start = place
    while start > done and text[start - 1].isalnum():
        start -= 1
    word = text[start:place] or text[place - 1 : place].strip()
    return "" if UNSPACED_CHARACTER.match(word[-1:]) else word


def _behind(text: str, place: int) -> str:
    """Give the word that begins at a place; "" in scripts without blanks between words."""
    word = text[place : _word_end(text, place)]
    return "" if UNSPACED_CHARACTER.match(word) else word


def _word_end(text: str, place: int) -> int:
    """Find the end of a word that continues at a place."""
    while place < len(text) and text[place].isalnum():
        place += 1
    return place


def _with_blank(text: str, start: int, stop: int, done: int) -> Span:
    """Extend a removed span by one blank beside it, not before `done`."""
    if start > done and text[start - 1] == " ":
        return start - 1, stop
    return start, stop + text.startswith(" ", stop)


def _with_signs(translation: str, span: Span, term: str) -> Span:
    """Extend the span of a translated word by the signs at the ends of its term, as in C++, .NET and 50%."""
    start, stop = span
    words = _WORDS.search(term)
    before, behind = (term[: words.start()], term[words.end() :]) if words else ("", "")
    if before and translation.endswith(before, 0, start):
        start -= len(before)
    found = re.compile(f" ?{re.escape(behind)}").match(translation, stop) if behind else None
    if found and (behind.strip(_ENDS) or translation[found.end() :].strip(_ENDS)):  # else it ends the sentence
        stop = found.end()
    return start, stop


def _taken_out(spans: Iterable[Span], edits: Sequence[Edit], translation: str) -> Iterator[Edit]:
    """Yield edits that remove spans, each with a blank, beside other edits."""
    done = 0
    for start, stop in spans:
        wide = _with_blank(translation, start, stop, done)
        free = not any(_overlap(wide, edit) for edit in edits)
        done = wide[1] if free else stop
        yield Edit(*(wide if free else (start, stop)), "")


def _overlap(one: Span | Edit, other: Span | Edit) -> bool:
    return one[0] < other[1] and other[0] < one[1]


class TermPlanner:
    """Plans the segments of a text; caches the last plan, since each is requested twice."""

    def __init__(
        self, terms: TermFinder, stand_ins: Sequence[str], tokenizer: Tokenizer, prefix: str, *, forces: bool = True
    ) -> None:
        """Make a planner.

        Args:
            stand_ins: names that the model copies.
            prefix: the required beginning of the translation; "": none.
            forces: whether a search may be made to write terms.
        """
        self._forces = forces
        self._terms = terms
        self._stand_ins = stand_ins
        self._tokenizer = tokenizer
        self._prefix = prefix
        self._last: tuple[str, Sequence[Span], TermPlan | None] = ("", (), None)

    def read(self, text: str) -> str:
        """Give the model's input for a text."""
        plan = self.plan(text)
        return text if plan is None else plan.reading.text

    def spans(self, text: str) -> Iterator[Span]:
        """Find the spans of terms, which must not be split."""
        return ((match.start, match.stop) for match in self._terms.find(text))

    def plan(self, text: str, contents: Sequence[Span] = ()) -> TermPlan | None:
        """Plan a segment.

        Args:
            contents: spans of the text, in order, that are content of kept elements: they stay unchanged.

        Returns:
            The plan; None if the text has no term.
        """
        if self._last[:2] != (text, tuple(contents)):
            found = _with_contents(text, self._terms.find(text), contents)
            matches = tuple(found if self._prefix else _joined(text, found))  # a prefix may end inside joined parts
            self._last = text, tuple(contents), self._planned(text, matches) if matches else None
        return self._last[2]

    def _planned(self, text: str, matches: tuple[Match, ...]) -> TermPlan:
        stand_ins = tuple(self._chosen(text, matches))
        pairs = zip(matches, stand_ins, strict=True)
        reading = Rewriting(
            text, [Edit(match.start, match.stop, _padded(text, match, name)) for match, name in pairs if name]
        )
        return TermPlan(text, matches, stand_ins, reading, self._constraints(matches, stand_ins), self._prefix)

    def _chosen(self, text: str, matches: Sequence[Match]) -> Iterator[str]:
        """Choose a stand-in for each kept text, as long as there are names that no other part of the text may be."""
        around = " ".join([text, self._prefix, *(form for match in matches for form in match.forms)]).casefold()
        free = iter([name for name in self._stand_ins if name.casefold() not in around])
        chosen: dict[str, str] = {}
        for match in matches:
            if match.kept and match.forms[0] not in chosen:
                chosen[match.forms[0]] = next(free, "")
            yield chosen[match.forms[0]] if match.kept else ""

    def _constraints(self, matches: Sequence[Match], stand_ins: Sequence[str]) -> Constraints | None:
        """Build the constraints of the search; terms that the model would not write by itself come first."""
        if not self._forces:
            return None
        given = [match for match, stand_in in zip(matches, stand_ins, strict=True) if not stand_in]
        kept = [match for match, stand_in in zip(matches, stand_ins, strict=True) if stand_in]
        left = missing(kept, self._prefix)  # the prefix may contain a kept part, and has no stand-ins
        names = [name for match, name in zip(matches, stand_ins, strict=True) if name and match in left]
        all_forms = [*(match.forms for match in given), *((name,) for name in names)]
        # Lazily: a text may have thousands of terms.
        terms = tuple(islice(filter(None, map(self._term, all_forms)), MOST_FORCED))
        at_most = tuple((ids, names.count(name)) for name in dict.fromkeys(stand_ins) if (ids := self._ids(name)))
        return Constraints(terms, self._tokenizer.begins_word, _MOST_LOSS, at_most) if terms else None

    def _term(self, forms: Iterable[str]) -> Term:
        """Give the forms that the model can write, as ids."""
        return tuple(ids for form in forms if (ids := self._ids(form)))

    def _ids(self, form: str) -> tuple[int, ...]:
        ids = tuple(self._tokenizer.encode_target(form))
        return ids if len(ids) <= _MOST_FORM_TOKENS and self._tokenizer.decode(ids) == form else ()
