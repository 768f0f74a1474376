"""Subtitles, SubRip (.srt) and WebVTT (.vtt): the lines of cues are replaced, all other content stays byte for byte.

WebVTT: https://www.w3.org/TR/webvtt1/
"""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from dragoman.documents.captions import in_capitals, in_small_letters, is_in_capitals, read_caption
from dragoman.documents.cues import Cue, Speech, speeches
from dragoman.documents.document import DocumentText, StatedLanguages, lines_of
from dragoman.documents.inline import Tagged, Token, from_html, has_words, to_html

_TIME: Final = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_TIMING: Final = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s|$)")
# A line that was meant as a timing: it begins with a time and `-->`, or has another arrow between two times.
_LIKE_TIME: Final = r"-?\d+[:：][\d:：.,]+"
_LIKE_TIMING: Final = re.compile(rf"\s*{_LIKE_TIME}\s*(?:-->|(?:[-–—=]+>|→)\s*{_LIKE_TIME})")
_NOTE: Final = re.compile(r"NOTE(?:\s|\Z)")  # begins a comment of WebVTT
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\xa0": "&nbsp;", "\u200e": "&lrm;", "\u200f": "&rlm;"}


class _Syntax(NamedTuple):
    """The differences between the formats.

    Attributes:
        tag: the pattern of markup inside a line, see `Tagged.read`.
        read: turns source into text.
        write: turns text into source.
        ends: matches a line that ends a cue; in WebVTT, a line of blanks does not.
        only_last: whether such a line ends only the last cue: a cue before it may have empty lines.
    """

    tag: re.Pattern[str]
    read: Callable[[str], str]
    write: Callable[[str], str]
    ends: re.Pattern[str]
    only_last: bool


_SRT: Final = _Syntax(
    re.compile(r"<(?P<end>/)?(?P<name>b|i|u|s|font)(?:\s[^<>]*)?>|\{\\[^{}]*\}|(?P<stop>[♪♫]+)", re.IGNORECASE),
    str,
    str,
    re.compile(r"\s*\Z"),
    only_last=True,
)
_VTT: Final = _Syntax(
    re.compile(r"<(?P<end>/)?(?P<name>c|i|b|u|lang|ruby|rt)(?:[\s.][^<>]*)?>|<[^<>]*>|(?P<stop>[♪♫]+)"),
    html.unescape,
    lambda text: "".join(_ENTITIES.get(character, character) for character in text),
    re.compile(r"[\r\n]*\Z"),
    only_last=False,
)


class _Spoken(NamedTuple):
    """A speech and its text.

    Attributes:
        speech: the speech in the file.
        text: its text; in small letters if the file has it in capitals.
        in_capitals: whether the file has the text in capitals.
    """

    speech: Speech
    text: Tagged
    in_capitals: bool

    @classmethod
    def read(cls, speech: Speech, syntax: _Syntax) -> "_Spoken":
        """Read a speech."""
        text = read_caption(speech.text, syntax.tag)
        tokens = [token._replace(text=syntax.read(token.text)) for token in text.tokens]
        capitals = is_in_capitals(tokens)
        return cls(speech, Tagged(list(in_small_letters(tokens)) if capitals else tokens, text.sources), capitals)

    def translated(self, translation: str) -> list[Token]:
        """Read the translation of the speech."""
        tokens = from_html(translation, self.text.tokens)
        return list(in_capitals(tokens)) if self.in_capitals else tokens


class Subtitles:
    """A file of cues.

    Attributes:
        texts: one for each speech in one cue, or in several cues if a sentence runs over them.
        protects_placeholders: False.
        languages: none.
        unwritten: none.
    """

    protects_placeholders = False
    languages: Sequence[StatedLanguages] = ()
    unwritten: Sequence[str] = ()

    def __init__(self, lines: list[str], syntax: _Syntax) -> None:
        """Find the cues.

        Args:
            lines: the lines of the file, with their line ends.
            syntax: the syntax of its format.
        """
        self._lines, self._syntax = lines, syntax
        self._cues = list(_cues(lines, syntax))
        self._spoken = [_Spoken.read(speech, syntax) for speech in speeches(self._cues, syntax.tag)]
        self.texts = [
            DocumentText(to_html(spoken.text.tokens), f"cue {spoken.speech.parts[0].cue + 1}")
            for spoken in self._spoken
            if has_words(spoken.text.tokens)
        ]

    def write(self, translations: Sequence[str | None]) -> bytes:
        """Give the content of the file; see `Document`."""
        left = iter(translations)
        written: list[list[str]] = [[] for _ in self._cues]
        for spoken in self._spoken:
            translation = next(left) if has_words(spoken.text.tokens) else None
            if translation is None:
                for part in spoken.speech.parts:
                    written[part.cue] += part.written(part.lines)
                continue
            for part, divided in spoken.speech.divide(spoken.translated(translation)):
                lines = [self._source(spoken.text, tokens).strip() for tokens in divided]
                written[part.cue] += part.written(lines)
        return "".join(self._replaced(written)).encode()

    def _replaced(self, written: Sequence[Sequence[str]]) -> Iterator[str]:
        """Yield the lines of the file with the new lines in its cues."""
        done = 0
        for cue, lines in zip(self._cues, written, strict=True):
            yield from self._lines[done : cue.first]
            done = cue.first + len(cue.lines)
            if cue.lines:
                between = self._lines[cue.first - 1].removeprefix(self._lines[cue.first - 1].rstrip("\r\n"))
                last = self._lines[done - 1]
                yield between.join(lines) + last[len(last.rstrip("\r\n")) :]
        yield from self._lines[done:]

    def _source(self, tagged: Tagged, tokens: Sequence[Token]) -> str:
        return tagged.source([token._replace(text=self._syntax.write(token.text)) for token in tokens])


def read_srt(content: bytes) -> Subtitles:
    """Read a SubRip file; raises ValueError if the content has another format, or is not UTF-8."""
    lines = lines_of(content)
    if not any(map(_TIMING.match, lines)) and any(line.strip() for line in lines):
        raise ValueError("is no SubRip: it has no times such as 00:00:01,000 --> 00:00:03,500")
    _check_arrows(lines)
    return Subtitles(lines, _SRT)


def read_vtt(content: bytes) -> Subtitles:
    """Read a WebVTT file; raises ValueError if the content has another format, or is not UTF-8."""
    lines = lines_of(content)
    if not "".join(lines[:1]).removeprefix("\ufeff").startswith("WEBVTT"):
        raise ValueError("is no WebVTT: it does not begin with WEBVTT")
    _check_arrows(lines)
    return Subtitles(lines, _VTT)


def _check_arrows(lines: Sequence[str]) -> None:
    """Check that each line that was meant as a timing is one: else its cue would be text of the cue before."""
    is_note = False
    for number, line in enumerate(lines, start=1):
        is_note = bool(line.strip() and (is_note or _NOTE.match(line)))
        if not is_note and _LIKE_TIMING.match(line) and not _TIMING.match(line):
            raise ValueError(
                f"line {number} must have two times with milliseconds and --> between, is {line.strip()!r:.120}"
            )


def _cues(lines: Sequence[str], syntax: _Syntax) -> Iterator[Cue]:
    """Find the cues: their text is the lines after a timing, up to the end of the cue or the next cue."""
    timings = [_TIMING.match(line) for line in lines]
    last = max((index for index, timing in enumerate(timings) if timing), default=0)
    for index, timing in enumerate(timings):
        if timing is None:
            continue
        ends = None if syntax.only_last and index < last else syntax.ends
        stop = index + 1
        while stop < len(lines) and not (ends and ends.match(lines[stop])) and not _begins_cue(lines, timings, stop):
            stop += 1
        while stop > index + 1 and not lines[stop - 1].strip():
            stop -= 1
        times = timing.groups(default="0")
        text = [line.rstrip("\r\n") for line in lines[index + 1 : stop]]
        yield Cue(index + 1, text, _seconds(times[:4]), _seconds(times[4:]))


def _begins_cue(lines: Sequence[str], timings: Sequence[object], index: int) -> bool:
    """Tell whether a cue begins at a line: with its time, its number, or after an empty line any other identifier."""
    if timings[index] is not None:
        return True
    is_number, is_apart = lines[index].strip().isdigit(), not lines[index - 1].strip()
    behind = index + 1
    while is_number and is_apart and behind < len(lines) and not lines[behind].strip():
        behind += 1
    return (is_number or is_apart) and behind < len(lines) and timings[behind] is not None


def _seconds(time: Sequence[str]) -> float:
    hours, minutes, seconds, fraction = time
    return float(int(hours) * 3600 + int(minutes) * 60) + float(f"{seconds}.{fraction}")
