"""Text with tags inside its lines, of any format, as HTML that a server translates, and back.

A pair of tags becomes an element <span id="N">, a single tag <wbr id="N">, and what ends a sentence <br id="N">: N is
the number that the format has given its tag. Translated, each of them stands where its words went.
"""

import html
import re
from collections import deque
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

_READ: Final = re.compile(r'<(?P<name>span|wbr|br) id="(?P<tag>\d+)">|(?P<end></span>)|(?P<text>[^<]+)')
_DEPTH: Final = 64  # of elements in elements; those farther out stand alone
_LETTER: Final = re.compile(r"[^\W\d_]")


class Kind(Enum):
    """What a token is."""

    TEXT = auto()
    BEGIN = auto()
    END = auto()
    ALONE = auto()
    BREAK = auto()


class Token(NamedTuple):
    """A piece of text, or a tag.

    Attributes:
        kind: which of them.
        text: without character references; "" of a tag.
        tag: the number of the tag, the same for both of a pair; -1 of a text.
    """

    kind: Kind
    text: str = ""
    tag: int = -1


_ELEMENTS: Final = {Kind.BEGIN: "span", Kind.ALONE: "wbr", Kind.BREAK: "br"}
_KINDS: Final = {element: kind for kind, element in _ELEMENTS.items()}


def to_html(tokens: Iterable[Token]) -> str:
    """Write tokens as HTML; pairs are nested."""
    return "".join(map(_written, tokens))


def from_html(source: str) -> list[Token]:
    """Read tokens of HTML that `to_html` wrote, translated or not.

    Raises:
        ValueError: it holds another tag, or its pairs are not nested.
    """
    tokens: list[Token] = []
    opened: list[int] = []
    done = 0
    while done < len(source):
        found = _READ.match(source, done)
        if found is None:
            raise ValueError(f"a translation has a tag that its text has not: {source[done : done + 40]!r}")
        done = found.end()
        if found["text"]:
            tokens.append(Token(Kind.TEXT, html.unescape(found["text"])))
        elif found["end"]:
            if not opened:
                raise ValueError("a translation has an end tag without its start")
            tokens.append(Token(Kind.END, tag=opened.pop()))
        else:
            tokens.append(Token(_KINDS[found["name"]], tag=int(found["tag"])))
            if tokens[-1].kind is Kind.BEGIN:
                opened.append(tokens[-1].tag)
    if opened:
        raise ValueError("a translation has a tag without its end")
    return tokens


def has_words(tokens: Iterable[Token]) -> bool:
    """Tell whether there is something to translate: a letter."""
    return any(_LETTER.search(token.text) for token in tokens)


class Tagged(NamedTuple):
    """A text whose tags are written in it, as in <b>this</b>.

    Attributes:
        tokens: of the text.
        sources: of each tag: what is written for it, and for its end.
    """

    tokens: list[Token]
    sources: list[tuple[str, str]]

    @classmethod
    def read(cls, text: str, pattern: re.Pattern[str]) -> "Tagged":
        """Find tags.

        Args:
            text: any.
            pattern: of a tag. Its groups say what it is: `name`, where it may be one of a pair, and `end`, where it is
                the second one; or `stop`, where it ends a sentence; else it stands alone.
        """
        pairs = _pairs(text, pattern)
        tagged = cls([], [])
        numbers: dict[int, int] = {}  # of tags, by the starts of their ends
        done = 0
        for found in pattern.finditer(text):
            tagged.write(text[done : found.start()])
            done = found.end()
            groups = found.groupdict()
            if found.start() in numbers:
                tagged.tokens.append(Token(Kind.END, tag=numbers[found.start()]))
            elif end := pairs.get(found.start()):
                numbers[end.start()] = len(tagged.sources)
                tagged.tag(Kind.BEGIN, found[0], end[0])
            else:
                tagged.tag(Kind.BREAK if groups.get("stop") else Kind.ALONE, found[0])
        tagged.write(text[done:])
        return tagged

    def write(self, text: str) -> None:
        """Add text."""
        if text:
            self.tokens.append(Token(Kind.TEXT, text))

    def tag(self, kind: Kind, source: str, end: str = "") -> None:
        """Add a tag that was not there."""
        self.tokens.append(Token(kind, tag=len(self.sources)))
        self.sources.append((source, end))

    def source(self, tokens: Iterable[Token]) -> str:
        """Write tokens of this text, or of its translation."""
        return "".join(
            token.text if token.kind is Kind.TEXT else self.sources[token.tag][token.kind is Kind.END]
            for token in tokens
        )


def _written(token: Token) -> str:
    if token.kind is Kind.TEXT:
        return html.escape(token.text, quote=False)
    return "</span>" if token.kind is Kind.END else f'<{_ELEMENTS[token.kind]} id="{token.tag}">'


def _pairs(text: str, pattern: re.Pattern[str]) -> dict[int, re.Match[str]]:
    """Find the ends of tags, by the starts of their beginnings; of pairs that overlap, only one counts."""
    opened: deque[re.Match[str]] = deque(maxlen=_DEPTH)
    pairs: dict[int, re.Match[str]] = {}
    for found in _named(text, pattern):
        if not found["end"]:
            opened.append(found)
            continue
        name = found["name"].lower()
        if any(each["name"].lower() == name for each in opened):
            while (begin := opened.pop())["name"].lower() != name:
                pass
            pairs[begin.start()] = found
    return pairs


def _named(text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    return (found for found in pattern.finditer(text) if found.groupdict().get("name"))
