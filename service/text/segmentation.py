"""Splits a text into pieces: text that is to be translated, and text that is kept between.

A text is split at sentence ends, because models are trained on sentences; sentencex finds the sentence ends, by the
rules and abbreviations of the language. Only a sentence that does not fit is split further: at the clause boundary
nearest to its middle, else at the word gap nearest to its middle, else between two characters of the endless word.
The halves are split in the same way until all fit. The time is linear up to a logarithm, for any text.

Text without a letter or digit is a separator: it never reaches the model and comes back exactly as it was.
The same holds for whitespace and control characters (NUL and tab too) around segments, rows of dashes, lone emoji,
emoji, arrows and bullets at the ends of a sentence, signs at the start of a line (#, > and dashes), the numbers of a
list, and all but the first of several question marks.
A line break or another control character always ends a segment, so none is ever inside one. So do |, › and » between
blanks, ;; (Qt), emoji between sentences, signs that draw a line, and three blanks or more, as between columns.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import Final, TypeAlias

import sentencex

from service.rewriting import Span
from service.text.piece import Piece

# sentencex takes quadratic time for some texts: it sees this number of characters at a time.
_WINDOW: Final = 1_000
# Words before a full stop where sentencex ends a sentence, but should not: abbreviations that it does not know, and
# ordinal numbers in languages that write them with a full stop, as in 3. Oktober ...
_ORDINAL: Final = r"\d{1,2}"
_ORDINAL_LANGUAGES: Final = "bs cs da de et fi fo hr hu is lb lv nb nn no pl sk sl sr tr"
_ABBREVIATIONS: Final = {
    "de": "Abb Abs Abt Anh Anm Aufl Bd Bde Bgm Bhf Dez Dipl Fa Fam Febr Frl Geschw Hrn Hrsg Inh Jh Kap Nrn Okt Pkt Stk "
    "Tel Tsd Tägl Monatl Jährl abzgl allg bes betr bspw dt durchschn ehem einschl engl entspr exkl folg franz frz geb "
    "gem gez ggü inkl ital max mind mtl od pers städt stellv techn urspr verh versch vorauss vorm zus zust zw zzgl "
    r"[\w.-]*-(?:Nr|Ing) \w+nr (?!html|xml|yaml|url|perl)[a-zäöü]+(?:[bdfgkmnprtz]|ch)l",
    "en": "Assoc Intl Ms Natl approx attn cont eds est excl incl lbs misc orig sect tel vol",
    "fr": r"MM? J\.-C",
}


def _goes_on(language: str) -> re.Pattern[str]:
    """Match these words and a full stop; one in small letters may also begin a sentence: Approx. 5 people came."""
    words = _ABBREVIATIONS.get(language, "").split()
    first = "|".join([word.capitalize() for word in words if word.islower()])
    ordinal = [_ORDINAL] * (language in _ORDINAL_LANGUAGES.split())
    return re.compile(rf"(?:^|[\s(])(?:{'|'.join(words + ordinal)})\.$" + (rf"|^(?:{first})\.$" if first else ""))


_GOES_ON: Final = {language: _goes_on(language) for language in (*_ORDINAL_LANGUAGES.split(), *_ABBREVIATIONS)}
# ... and common words that sentencex takes for abbreviations: Maine, Oklahoma, May, Magister.
_ENDS: Final = {"en": re.compile(r"\b(?:me|O[Kk]|ok|may)(?=\.)"), "de": re.compile(r"\b(?:mich|mag|O[Kk]|ok)(?=\.)")}
# After 5 p.m., these go on: EST, Monday.
_HALF_DAY: Final = re.compile(r"\b[ap]\.m\.$")
_ZONE: Final = re.compile(r"(?:[ACEMP][SD]?T|[BIJ]ST|CES?T|GMT|UTC|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b")
_AROUND: Final = 8  # characters on both sides that these patterns may look at
_LOOK_BACK: Final = 32  # characters before a boundary, or at the start of the sentence, that can rule it out

_CLOSERS: Final = "\"'”’»)]}›」』）】》"
_MARKS: Final = re.escape(_CLOSERS + "“„«‚‘([{‹「『（【《")
# sentencex keeps a quotation or parenthesis whole, however many sentences it holds, ends no sentence at … and !!!, and
# fails on some wide blanks. So it gets full stops for …, and spaces for all but the last !, for marks and such blanks:
# apostrophes inside words stay.
_UNSEEN: Final = re.compile(rf"(?<!\w)[{_MARKS}]|[{_MARKS}](?!\w)|[^\S ]|[!?](?=[!?])")
_BLANK: Final = re.compile(rf"[{re.escape(_CLOSERS)}“«]*(?:\s+[{re.escape(_CLOSERS)}])*(\s+)")
_NEEDS_BLANK: Final = ".!?…"  # text that follows these at once is of the same word: example.com
_STUB: Final = re.compile(r"\W*([^\W\d_]|\d{1,2})\.")  # an initial, or the number of a list: no sentence
_TITLE: Final = re.compile(r"(?:^|\W)[^\W\d_a-z][a-z]{1,3}\.$")  # before a number: Vol. 3, Eq. 5
_LETTERS: Final = re.compile(r"[^\W\d_]+")

_LINE: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_COLUMN: Final = r"(?<![\s,;])[ \xa0]{3,}|(?<=\));;(?=\w)"  # ;; between the filters of a dialog of Qt
# Before the text of a line: # Title, > Quotation, – Item, and the number of a list, with its first word: 1. Milk
_LEAD: Final = re.compile(r"(\s*(?:[#>*+–—-]{1,6}\s+)*+)(?:(\d{1,2}|[a-z])\.\s+(?=(\w*\.?)))?")
# No items: 24. Dezember, d. h.
_NO_ITEM: Final = re.compile(r"(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-z]*\.?|\w{1,3}\.")
# Lines that are drawn with signs: === Title ===, Chapter 1 ..... 12
_DRAWN: Final = r"\.{4,}|^={2,}(?=\s)|(?<=\s)={2,}$|(?<!\S)([=~*#-])\1{3,}|(?<![=~-])(?:={4,}+|-{4,}+|~{4,}+)(?!\S)"
# Emoji before a word that often begins a sentence. Behind one word they may be the verb: I ❤ Berlin
_BEGINS: Final = (
    "I|We|You|He|She|It|They|This|That|There|Have|Do|Please|Thanks?|See|Let|Can|What|When|Where|Who|Why|How|Is|Are|My|"
    "Happy|Good|Great|Hope|Call|Come|Check|Just|So|But|And|Now|Today|Enjoy|Get|Join|Don't|The|Ich|Wir|Du|Ihr|Er|Sie|Das|"
    "Die|Der|Es|Bis|Viele?|Hab|Habt|Bitte|Danke|Und|Aber|Wie|Was|Wann|Wo|Komm|Lass|Mach|Schönen?|Guten|Heute|Jetzt|Dann"
)
_EMOJI: Final = r"\u2600-\u2793\U0001f000-\U0001faff"
_BETWEEN: Final = rf"(?<=\s)[{_EMOJI}][\u200d\ufe0f{_EMOJI}]*(?=\s+(?:{_BEGINS})\b)"
_DIVIDER: Final = re.compile(rf"[|›»]|;;|={{2}}|[.~*#-]{{4}}|[ \xa0]{{3}}|[{_EMOJI}]")
_ALONE: Final = re.compile(rf"(?<!\S)(?:\|+|[›»])(?!\S)|{_COLUMN}|{_DRAWN}|({_BETWEEN})")
_BAR: Final = re.compile(rf"(?<!\S)\|+(?!\S)|{_COLUMN}|{_DRAWN}|({_BETWEEN})")
_OPENING: Final = re.compile("[‹«]")  # with which › and » are quotation marks, also with blanks inside, as in French
_CLAUSE: Final = re.compile(r"[,;:]\s+|[，、：；]\s*|(?<!\s)\s+(?=[–—])")
_WORD_GAP: Final = re.compile(r"\s+")
_NOT_BLANK: Final = re.compile(r"\S")
_PORTION: Final = 10_000  # characters that a search sees at a time: it stops all other threads meanwhile
_WORD: Final = re.compile(r"[^\W_]")
_SHOUTS: Final = ("??", "!?", "?!")  # of !!! a model may make a full stop, and none of !
# Marks of direction, and pictures that a model would drop or write as bytes: arrows, shapes, dingbats, emoji, bullets.
_PICTURES: Final = r"\u200e\u200f\u202a-\u202e\u2066-\u2069•‣←-⇿■-➿⬀-⯿\U0001f000-\U0001faff"
_PICTURE: Final = re.compile(rf"[{_PICTURES}]")
_AMONG_PICTURES: Final = re.compile(rf"[\s\u200d\ufe0f{_PICTURES}]")
_PICTURES_BEFORE: Final = re.compile(_PICTURE.pattern + _AMONG_PICTURES.pattern + "*")

FindSpans: TypeAlias = Callable[[str], Iterable[Span]]


def split(text: str, language: str, fits: Callable[[str], bool], unbroken: FindSpans | None = None) -> Iterator[Piece]:
    """Split a text into pieces that fit, one after the other: each piece takes little time, for any text.

    Args:
        text: any text, without lone surrogates.
        language: of the text, a BCP-47 code; for a language that sentencex does not know, it uses rules of English.
        fits: tells whether a piece is short enough for the model; called for each candidate, and ignored where it
            refuses a single character, or an unbroken part.
        unbroken: finds the parts of a text that must not be split, in their order.

    Yields:
        The pieces of the text in their order, without a gap. The text that is to be translated has a letter or digit
        and no blank at its ends; the last call of `fits` before each piece was for that piece.
    """
    end = 0
    for sentence in _sentences(text, language.partition("-")[0].lower(), unbroken):
        first, last = sentence
        whole = first == last or fits(text[first:last])
        for start, stop in (sentence,) if whole else _fitting(text, first, last, fits, unbroken):
            inside = (start, stop) != sentence
            if _WORD.search(text, start, stop):
                yield Piece(text[end:start], text[start:stop], inside)
            else:
                yield Piece(text[end:stop], "", inside)
            end = stop
    yield Piece(text[end:])


def _sentences(text: str, language: str, unbroken: FindSpans | None) -> Iterator[Span]:
    """Yield the borders [start, stop) of each sentence, which may be empty; only separators are between them."""
    items = _items(text) if "\n" in text else {}
    for line in _LINE.finditer(text):
        whole = None if unbroken is None else _Whole(unbroken(line[0]))
        for begun, stop in _parts(line, unbroken) if _DIVIDER.search(line[0]) else (line.span(),):
            first = begun
            if whole is None and first == line.start() and (lead := _LEAD.match(line[0])):
                begun += lead.end() if lead[2] and _is_item(lead, items) else lead.end(1)
            for left, right in _gaps(text[first:stop], language):
                cut = _cut(text, begun, first + left, first + right, language)
                if cut and not (whole and whole.has(cut[0] - line.start(), cut[1] - line.start())):
                    yield _bare(text, begun, cut[0], pictures=whole is not None)
                    begun = cut[1]
            yield _bare(text, begun, stop, pictures=whole is not None)


def _items(text: str) -> Mapping[int, Set[str]]:
    """Find the first words behind numbers and letters that begin lines, by the number, or the code of the letter."""
    items = defaultdict[int, set[str]](set)
    for line in _LINE.finditer(text):
        if (lead := _LEAD.match(text, *line.span())) and lead[2] and not _NO_ITEM.fullmatch(lead[3]):
            items[_place(lead)].add(lead[3])
    return items


def _is_item(lead: re.Match[str], items: Mapping[int, Set[str]]) -> bool:
    """Tell whether a number is of a list: a neighbour of it begins a line, too, with another word: no 1. Platz."""
    if _NO_ITEM.fullmatch(lead[3]):
        return False
    place = _place(lead)
    return any(items.get(other, set()) - {lead[3]} for other in (place - 1, place + 1))


def _place(lead: re.Match[str]) -> int:
    return int(lead[2]) if lead[2].isdecimal() else ord(lead[2])


def _parts(line: re.Match[str], unbroken: FindSpans | None) -> Iterator[Span]:
    """Yield the borders of the parts of a line between dividers, as in titles, menus, paths and tables of contents."""
    content = line[0]  # each of these is a copy
    whole = None if unbroken is None else _Whole(unbroken(content))
    begun = line.start()
    for divider in _BAR.finditer(content) if _OPENING.search(content) else _ALONE.finditer(content):
        first = max(begun - line.start(), divider.start() - _LOOK_BACK)
        before = content[first : divider.start()].split()[-2:] if divider[2] else ()
        if len(before) == 1 or (before and before[0][-1] in _NEEDS_BLANK):
            continue
        if not (whole and whole.has(*divider.span())):
            yield begun, line.start() + divider.start()
            begun = line.start() + divider.end()
    yield begun, line.end()


def _gaps(line: str, language: str) -> Iterator[tuple[int, int]]:
    """Yield the borders of the gaps between sentences that sentencex finds: blanks, and marks that close or open.

    The window moves on by at least half of its length, and never into the middle of a sentence shorter than that half.
    """
    place = 0
    while place < len(line):
        # The whole line at once would stop all other threads.
        begin = max(0, place - _AROUND)
        seen = _UNSEEN.sub(" ", line[begin : place + _WINDOW + _AROUND]).replace("…", ".")
        if language in _ENDS:
            seen = _ENDS[language].sub(lambda word: word[0][0] + "x" * (len(word[0]) - 1), seen)
        window = seen[place - begin :][:_WINDOW]
        start = place
        for sentence, following in pairwise(sentencex.segment(language, window)):
            start += len(sentence)
            left = start - len(sentence) + len(sentence.rstrip())
            yield left, start + len(following) - len(following.lstrip())
        if place + len(window) == len(line):
            return
        half = _WINDOW // 2
        place = start if start >= place + half else place + (window.rfind(" ", half) + 1 or _WINDOW)


def _cut(text: str, begun: int, left: int, right: int, language: str) -> tuple[int, int] | None:
    """Find the blank [stop, start) in a gap between two sentences; None if the sentence goes on after the gap.

    The gap [left, right) begins after a full stop, as a rule, of a sentence that began at `begun`.
    """
    before = text[max(begun, left - _LOOK_BACK) : left]
    blank = _BLANK.match(text, left, right)
    if before and blank:
        stop, start = blank.span(1)
    elif before and before[-1] not in _NEEDS_BLANK:
        stop = start = right - len(text[left:right].lstrip(_CLOSERS))
    else:
        return None
    following = text[right : right + 1]
    goes_on = (
        (following.islower() and _trails(text, begun, before, right, closed=stop > left))
        or (following == "と" and stop > left)  # Japanese: says who was quoted
        or (following.isdecimal() and _TITLE.search(before))
        or (language == "en" and _HALF_DAY.search(before) and _ZONE.match(text, right))
        or _STUB.fullmatch(before)
        or (language in _GOES_ON and _GOES_ON[language].search(before))
    )
    return None if goes_on else (stop, start)


def _trails(text: str, begun: int, before: str, right: int, *, closed: bool) -> bool:
    """Tell whether a small letter continues the sentence before it, as after an abbreviation.

    After a plain full stop it does, unless this writer begins sentences with small letters, or with a name like iPhone.
    """
    if closed or before.endswith(("…", "...")):
        return True
    first, word = _LETTERS.search(text, begun, begun + _LOOK_BACK), _LETTERS.match(text, right)
    return before.endswith(".") and bool(first and word and first[0][0].isupper() and word[0].islower())


def _bare(text: str, start: int, stop: int, *, pictures: bool) -> tuple[int, int]:
    """Give the borders of a piece without the blanks at its ends; for a blank piece, give its end twice.

    Args:
        pictures: whether pictures at its ends belong to it, as they may to a term.
    """
    piece = text[start:stop].lstrip()
    start, end = stop - len(piece), stop - len(piece) + len(piece.rstrip())
    if pictures:
        return start, end
    while text[end - 2 : end] in _SHOUTS and end - 2 >= start:
        end -= 1
    if piece.isascii():
        return start, end
    if before := _PICTURES_BEFORE.match(text, start, end):
        start = before.end()
    last = end
    while last > start and _AMONG_PICTURES.match(text, last - 1):
        last -= 1
    return start, last if _PICTURE.search(text, last, end) else end


class _Whole:
    """The unbroken parts of a line, found as far as gaps are checked, which have to come in their order."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = iter(spans)
        self._span: Span | None = (0, 0)

    def has(self, stop: int, start: int) -> bool:
        """Tell whether a gap [stop, start) lies inside an unbroken part."""
        while self._span is not None and self._span[1] <= start:
            self._span = next(self._spans, None)
        return self._span is not None and self._span[0] < stop


def _fitting(
    text: str, start: int, stop: int, fits: Callable[[str], bool], unbroken: FindSpans | None
) -> Iterator[Span]:
    """Yield the borders of one sentence, or of the pieces into which it is halved until all fit."""
    pending = [(start, stop)]
    whole: list[Span] | None = None
    while pending:
        left, right = pending.pop()
        if right - left == 0 or fits(text[left:right]) or right - left == 1:
            yield left, right
            continue
        if whole is None:
            spans = () if unbroken is None else unbroken(text[start:stop])
            whole = [(start + first, start + last) for first, last in spans]
        if (cuts := _halve(text, left, right, whole)) is None:
            yield left, right
        else:
            pending += ((cuts[1], right), (left, cuts[0]))


def _halve(text: str, start: int, stop: int, whole: Sequence[Span]) -> Span | None:
    """Find the gap [first_stop, second_start) near the middle of [start, stop); the gap may be empty.

    Returns:
        The gap; None where all of [start, stop) is unbroken.
    """
    for boundary in (_CLAUSE, _WORD_GAP):
        gap = _nearest_gap(boundary, text, start, stop, whole)
        if gap is not None:
            return gap
    cut = _between_characters(text, (start + stop) // 2, stop)
    if (part := _part_around(whole, cut, cut)) is None:
        return cut, cut
    edge = next((edge for edge in part if start < edge < stop), None)
    return None if edge is None else (edge, edge)


def _nearest_gap(boundary: re.Pattern[str], text: str, start: int, stop: int, whole: Sequence[Span]) -> Span | None:
    """Find the whitespace of the boundary that is nearest to the middle and has text on both sides."""
    best = None
    middle = (start + stop) / 2
    for match in _matches(boundary, text, start, stop):
        right = match.end()
        left = match.start() + len(match[0].rstrip())
        is_border = start < left and right < stop and _part_around(whole, left, right) is None
        if is_border and (best is None or abs(right - middle) < abs(best[1] - middle)):
            best = left, right
        if right > middle and best:
            break
    return best


def _matches(boundary: re.Pattern[str], text: str, start: int, stop: int) -> Iterator[re.Match[str]]:
    """Find a boundary in portions; a match that begins before a character that is not blank ends before it."""
    while start < stop:
        border = _NOT_BLANK.search(text, start + _PORTION, stop)
        following = border.start() if border else stop
        found = boundary.finditer(text, start, following + 1 if border else stop)
        yield from (match for match in found if match.start() < following)
        start = following


def _part_around(whole: Sequence[Span], stop: int, start: int) -> Span | None:
    """Find the unbroken part around a gap [stop, start)."""
    following = bisect_right(whole, start, key=lambda part: part[1])
    return whole[following] if following < len(whole) and whole[following][0] < stop else None


def _between_characters(text: str, cut: int, stop: int) -> int:
    """Move a cut behind the marks and joiners of the character before it, if these are few."""
    for place in range(cut, min(cut + 16, stop)):
        joined = text[place - 1] == "\u200d" or text[place] == "\u200d"
        if not joined and not unicodedata.category(text[place]).startswith(("M", "Sk")):
            return place
    return cut
