"""Text to segments and separators, and back; pure.

A text is split at sentence ends, because models are trained on sentences. Only a sentence that does not fit
is split further: at the clause boundary nearest to its middle, else at the word gap nearest to its middle,
else between two characters of the endless word; the halves likewise until all fit. That takes linear time but
for a logarithm, whatever the text holds.

What has no letter and no digit is a separator: it never reaches the model and comes back exactly as it was.
So are whitespace and control characters (NUL and tab too) around segments, rows of dashes, lone emoji.
A line break or another control character always ends a segment, so none is ever inside one.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

# Abbreviations that a name or another word of the same sentence follows.
_ABBREVIATION: Final = re.compile(
    "mrs?|ms|mx|dr|prof|st|sr|jr|rev|gen|col|sgt|capt|lt|gov|sen|messrs|mt|vs|approx|cf|viz|mme|mlle"
    "|hr|fr|frl|dipl|ing|bzw|ca|evtl|ggf|inkl|vgl|sog"
)
# Abbreviations only in front of a number: elsewhere they are words, or end a sentence.
_BEFORE_NUMBER: Final = re.compile(
    "nos?|nr|figs?|vol|sec|art|abs|bd|pp?|s|ch|jan|feb|mar|apr|jun|jul|aug|sept?|o[ck]t|nov|de[cz]"
)
_CLOSERS: Final = "\"'”’»«“)]}›」』）】》"
_WIDE_END: Final = "。！？；｡"
_LOOK_BACK: Final = 32  # characters in front of a full stop that can tell an abbreviation

_BLANK: Final = r"\s\x00-\x1f\x7f-\x9f"
# Every alternative takes a whole run and needs nothing after it: no text makes this quadratic.
_GAP: Final = re.compile(rf"(?P<blank>[{_BLANK}]+)|[{_WIDE_END}]+[{re.escape(_CLOSERS)}]*(?P<wide>[{_BLANK}]*)")
_HARD: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CLAUSE: Final = re.compile(r"[,;:]\s+|[，、：]\s*|(?<!\s)\s+(?=[–—])")
_WORD_GAP: Final = re.compile(r"\s+")
_WORD: Final = re.compile(r"[^\W_]")


class Split(NamedTuple):
    """A text in pieces: ``separators[0] + segments[0] + separators[1] + ... + separators[-1]``.

    Attributes:
        separators: what stands before, between and after the segments; one more than there are segments.
        segments: what is to be translated; each holds a letter or digit and no blank at its ends.
    """

    separators: list[str]
    segments: list[str]


def split(text: str, fits: Callable[[str], bool]) -> Split:
    """Split a text into segments that fit.

    Args:
        text: any text, without lone surrogates.
        fits: whether a piece is short enough for the model; asked of each candidate, and ignored where it
            refuses a single character.

    Returns:
        The pieces: :func:`join` of them is the text itself.
    """
    separators, segments = [], []
    end = 0
    for sentence in _sentences(text):
        for start, stop in _fitting(text, *sentence, fits):
            if _WORD.search(text, start, stop):
                separators.append(text[end:start])
                segments.append(text[start:stop])
                end = stop
    return Split([*separators, text[end:]], segments)


def join(separators: Sequence[str], segments: Sequence[str]) -> str:
    """Put translated segments back between the separators of their text.

    Raises:
        ValueError: there is not exactly one separator more than there are segments.
    """
    pieces = [separators[0]]
    for segment, separator in zip(segments, separators[1:], strict=True):
        pieces += (segment, separator)
    return "".join(pieces)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the borders [start, stop) of each sentence; what lies between them is blank."""
    start = 0
    for gap in _GAP.finditer(text):
        left, right = gap.span("blank" if gap["blank"] else "wide")
        if left > start and _ends_sentence(text, start, gap):
            yield start, left
            start = right
        elif left == start:
            start = right
    if start < len(text):
        yield start, len(text)


def _ends_sentence(text: str, start: int, gap: re.Match[str]) -> bool:
    """Tell whether the sentence that began at ``start`` ends in front of this gap."""
    if not gap["blank"]:
        return True
    before = text[max(start, gap.start() - _LOOK_BACK) : gap.start()]
    following = text[gap.end() : gap.end() + 2].lstrip("\"'“„«»‚‘([¿¡")[:1]
    return not following or bool(_HARD.search(gap["blank"])) or _is_sentence_end(before, following)


def _is_sentence_end(before: str, following: str) -> bool:
    """Judge by the characters in front of a gap and the first letter or digit after it."""
    bare = before.rstrip(_CLOSERS)
    quoted = len(bare) < len(before)
    if bare.endswith(("!", "?", "…", "...")):
        return not (following.islower() and (quoted or bare.endswith(("…", "..."))))
    return bare.endswith(".") and not following.islower() and not _is_abbreviation(bare, following)


def _is_abbreviation(before: str, following: str) -> bool:
    """Tell whether the full stop at the end belongs to the word: Dr. J. e.g. No. 5, 3. Oktober."""
    words = before.split()
    word = words[-1][:-1].lstrip("\"'“„«»‚‘([") if words else ""
    if len(word) == 1 and word.isalpha():
        return word != "I"  # an initial; the pronoun ends more sentences than it names people
    if word.isdecimal():
        return len(word) <= 2  # an ordinal or the number of a list; years end sentences
    lower = word.lower()
    numbered = following.isdigit() and bool(_BEFORE_NUMBER.fullmatch(lower))
    dotted = "." in word and all(len(part) <= 2 for part in word.split("."))  # U.S., p.m., Ph.D.
    return dotted or bool(_ABBREVIATION.fullmatch(lower)) or numbered


def _fitting(text: str, start: int, stop: int, fits: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
    """Yield the borders of one sentence, or of the pieces into which it is halved until all fit."""
    pending = [(start, stop)]
    while pending:
        left, right = pending.pop()
        if fits(text[left:right]) or right - left == 1:
            yield left, right
        else:
            first_stop, second_start = _halve(text, left, right)
            pending += ((second_start, right), (left, first_stop))


def _halve(text: str, start: int, stop: int) -> tuple[int, int]:
    """Find the gap [first_stop, second_start) near the middle of [start, stop); the gap may be empty."""
    for boundary in (_CLAUSE, _WORD_GAP):
        gap = _nearest_gap(boundary, text, start, stop)
        if gap is not None:
            return gap
    cut = _between_characters(text, (start + stop) // 2, stop)
    return cut, cut


def _nearest_gap(boundary: re.Pattern[str], text: str, start: int, stop: int) -> tuple[int, int] | None:
    """Find the whitespace of the boundary nearest to the middle that leaves something on both sides."""
    best = None
    middle = (start + stop) / 2
    for match in boundary.finditer(text, start, stop):
        right = match.end()
        left = match.start() + len(match[0].rstrip())
        if start < left and right < stop and (best is None or abs(right - middle) < abs(best[1] - middle)):
            best = left, right
        if right > middle:
            break
    return best


def _between_characters(text: str, cut: int, stop: int) -> int:
    """Move a cut behind the marks and joiners of the character before it, if these are few."""
    for place in range(cut, min(cut + 16, stop)):
        joined = text[place - 1] == "\u200d" or text[place] == "\u200d"
        if not joined and not unicodedata.category(text[place]).startswith(("M", "Sk")):
            return place
    return cut
