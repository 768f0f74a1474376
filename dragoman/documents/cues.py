"""Cues of subtitles: which parts of cues form one text, and how its translation is divided between them."""

import html
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, takewhile
from typing import Final, NamedTuple

from dragoman.documents.captions import is_sound
from dragoman.documents.inline import Kind, Token

_PAUSE_S: Final = 3.0  # between cues; no sentence goes on after a longer pause
_MOST_PARTS: Final = 6
# Marks of another speaker: a dash before a line, or a voice of WebVTT.
_SPEAKER: Final = re.compile(
    r"(?:<(?!v)[^<>]*>|\{\\[^{}]*\}|\s)*[-\u2010-\u2015]\s*(?=[^\W\d]|[<\[(\"'“„«¿¡])|\s*<v[\s.][^<>]*>"
)
_POSITION: Final = re.compile(r"(?:\{\\[^{}]*\}\s*)+")  # of SubRip: {\an8}
_VOICE_END: Final = re.compile(r"\s*</v>\s*\Z")
_QUOTES: Final = " \t\"'”’»"
_ENDS: Final = (*".!?…。！？])）",)
_BEGINS: Final = (*"[(（",)
# `</i> <i>` between two cues: one element of the sentence, which the file closes and opens again between the cues.
_SEAM: Final = re.compile(r"</([biu])> <\1>", re.IGNORECASE)
_BLANKS: Final = re.compile(r"\s+")
_PAUSES: Final = ",;:.!?…，。、；："
_PAUSE_WORTH: Final = 8  # a cut after a punctuation mark may be this many characters farther from its target


class Cue(NamedTuple):
    """A cue of a file.

    Attributes:
        first: the first line of text in the file, from 0.
        lines: the lines of text, without their line ends.
        begin_s: when the cue appears.
        end_s: when the cue disappears.
    """

    first: int
    lines: Sequence[str]
    begin_s: float
    end_s: float


class Part(NamedTuple):
    """The speech of one speaker in one cue, a sound in brackets with lines of its own, or a line of blanks.

    Attributes:
        cue: the index of the cue.
        first: the index of its first line within the cue.
        prefix: the characters before the text: a dash, the name of a voice, or a position.
        lines: the lines of text.
        suffix: the characters after the text: the end of a voice.
    """

    cue: int
    first: int
    prefix: str
    lines: Sequence[str]
    suffix: str

    @property
    def text(self) -> str:
        """The text of all lines, without line breaks."""
        return " ".join(line.strip() for line in self.lines)

    def written(self, lines: Sequence[str]) -> list[str]:
        """Give the lines of the file that have these lines of text."""
        *before, last = [self.prefix + lines[0], *lines[1:]]
        return [*before, last + self.suffix]


class Speech(NamedTuple):
    """Consecutive parts of cues that form one text.

    Attributes:
        parts: one part or more.
        weights: the length of the text of each part.
    """

    parts: Sequence[Part]
    weights: Sequence[int]

    @property
    def text(self) -> str:
        """The text of all parts."""
        return _SEAM.sub(" ", " ".join(part.text for part in self.parts))

    def divide(self, tokens: Sequence[Token]) -> Iterator[tuple[Part, list[list[Token]]]]:
        """Divide a translation into lines for each part: as many as the part has now, fewer if there are too few words.

        An element that crosses the end of a part is closed there, and opened again in the next part.
        """
        divided = _divided(tokens, self.weights, reopens=True)
        for part, own in zip(self.parts, divided, strict=True):
            lines = _divided(own, [1] * len(part.lines), reopens=False)
            yield part, [line for line in lines if line] or [[]]


def speeches(cues: Sequence[Cue], tag: re.Pattern[str]) -> Iterator[Speech]:
    """Join parts of cues if a sentence runs over them.

    Args:
        cues: the cues of a file, in its order.
        tag: the pattern of markup that is no text.
    """
    waiting: list[tuple[Part, str]] = []  # each with its text without tags
    for part in _parts(cues):
        plain = tag.sub("", part.text)
        if waiting and not (len(waiting) < _MOST_PARTS and _goes_on(waiting[-1], (part, plain), cues)):
            yield _speech(waiting)
            waiting = []
        waiting.append((part, plain))
    if waiting:
        yield _speech(waiting)


def _speech(parts: Sequence[tuple[Part, str]]) -> Speech:
    return Speech([part for part, _ in parts], [len(plain) for _, plain in parts])


def _parts(cues: Sequence[Cue]) -> Iterator[Part]:
    for index, cue in enumerate(cues):
        prefix, first = "", 0
        lines: list[str] = []
        for number, line in enumerate(cue.lines):
            found = _SPEAKER.match(line) or (_POSITION.match(line) if number == 0 else None)
            begins = found or _stands_alone(line) or (lines and _stands_alone(lines[-1]))
            if begins and lines:
                yield _part(index, first, prefix, lines)
            if begins or not lines:
                prefix, first, lines = found[0] if found else "", number, []
            lines.append(line[len(prefix) :] if found else line)
        if lines:
            yield _part(index, first, prefix, lines)


def _stands_alone(line: str) -> bool:
    """Tell whether a line is a part of its own: a sound, or a line of blanks, which WebVTT may have inside a cue."""
    return is_sound(line) or not line.strip()


def _part(cue: int, first: int, prefix: str, lines: Sequence[str]) -> Part:
    end = _VOICE_END.search(lines[-1])
    suffix = end[0] if end else ""
    return Part(cue, first, prefix, [*lines[:-1], lines[-1].removesuffix(suffix)], suffix)


def _goes_on(before: tuple[Part, str], behind: tuple[Part, str], cues: Sequence[Cue]) -> bool:
    """Tell whether the second part continues the sentence of the first part."""
    (first, first_text), (second, second_text) = before, behind
    has_speaker = second.prefix and not _POSITION.fullmatch(second.prefix)
    is_next = second.cue == first.cue + 1 and not has_speaker and second.first == 0
    is_sung = any(note in part.text for part in (first, second) for note in "♪♫")
    if not is_next or is_sung or first_text.rstrip(_QUOTES).endswith(_ENDS) or second_text.lstrip().startswith(_BEGINS):
        return False
    pause_s = cues[second.cue].begin_s - cues[first.cue].end_s
    have_words = all(any(map(str.isalnum, html.unescape(text))) for text in (first_text, second_text))
    return have_words and pause_s <= _PAUSE_S


def _divided(tokens: Sequence[Token], weights: Sequence[int], *, reopens: bool) -> list[list[Token]]:
    """Divide tokens by weights; `reopens` says whether elements are closed and reopened at the ends of parts."""
    division = _Division(_spans("".join(token.text for token in tokens), weights), reopens=reopens)
    for token in tokens:
        division.add(token)
    division.end()
    return division.parts


class _Division:
    """Divides tokens at the ends of the parts of their text.

    Attributes:
        parts: the tokens of each part.
    """

    def __init__(self, spans: Sequence[tuple[int, int]], *, reopens: bool) -> None:
        """Begin with the first part.

        Args:
            spans: where each part begins and ends in the text.
            reopens: whether elements are closed at the end of a part, and opened again in the next part.
        """
        self.parts: list[list[Token]] = [[] for _ in spans]
        self._spans, self._reopens = spans, reopens
        self._opened: list[Token] = []
        self._current = self._place = 0

    def add(self, token: Token) -> None:
        """Add the next token."""
        if token.kind is Kind.TEXT:
            self._add_text(token.text)
            return
        if token.kind is Kind.END:
            self._opened.pop()
        else:
            while not self._is_last and self._place >= self._spans[self._current][1]:
                self._advance()
            if token.kind is Kind.BEGIN:
                self._opened.append(token)
        self.parts[self._current].append(token)

    def end(self) -> None:
        """Go on to the last part."""
        while not self._is_last:
            self._advance()

    @property
    def _is_last(self) -> bool:
        return self._current + 1 == len(self._spans)

    def _add_text(self, text: str) -> None:
        """Add text to the parts that it belongs to, without the blanks between them."""
        stop = self._place + len(text)
        while True:
            first, last = self._spans[self._current]
            if piece := text[max(first - self._place, 0) : max(last - self._place, 0)]:
                self.parts[self._current].append(Token(Kind.TEXT, piece))
            if self._is_last or stop <= self._spans[self._current + 1][0]:
                break
            self._advance()
        self._place = stop

    def _advance(self) -> None:
        if self._reopens:
            self.parts[self._current] += [Token(Kind.END, tag=token.tag) for token in reversed(self._opened)]
            self.parts[self._current + 1] += self._opened
        self._current += 1


def _spans(text: str, weights: Sequence[int]) -> list[tuple[int, int]]:
    """Find the span of each part of a text: cut between words, near the part's share, and preferably after a comma."""
    begin, end = len(text) - len(text.lstrip()), len(text.rstrip())
    begin = min(begin, end)
    cuts = [found.span() for found in _BLANKS.finditer(text, begin, end)]
    count = len(weights) - 1
    if len(cuts) < count:  # a script without blanks between words, or too few words
        cuts = [(place, place) for place in range(begin + 1, end)]
    cuts += [(end, end)] * (count - len(cuts))
    total = sum(weights) or 1
    taken: list[tuple[int, int]] = []
    first = 0
    for number, share in enumerate(accumulate(weights[:-1]), start=1):
        target = begin + (end - begin) * share / total
        first = _nearest(text, cuts, range(first, len(cuts) - count + number), target)
        taken.append(cuts[first])
        first += 1
    starts = [begin, *[start for _, start in taken]]
    return list(zip(starts, [*[stop for stop, _ in taken], end], strict=True))


def _nearest(text: str, cuts: Sequence[tuple[int, int]], indices: range, target: float) -> int:
    """Choose one of the cuts with these indices."""
    reach = target + _PAUSE_WORTH  # no later cut can be better
    near = takewhile(lambda index: index == indices[0] or cuts[index][0] <= reach, indices)
    return min(near, key=lambda index: _distance(text, cuts[index][0], target))


def _distance(text: str, stop: int, target: float) -> float:
    return abs(stop - target) - (_PAUSE_WORTH if stop and text[stop - 1] in _PAUSES else 0)
