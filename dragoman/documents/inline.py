"""Text with tags in its lines, of any format: to HTML for a server, and back.

A pair of tags becomes an element <span id="N">, a single tag <wbr id="N">, a tag that ends a sentence <br id="N">, and
a kept word the placeholder {#N}; N is the number of the tag in its format. In the translation, each of them stands
beside the translations of its words.
"""

import html
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

_READ: Final = re.compile(r'<(?P<name>span|wbr|br) id="(?P<tag>\d{1,9})">|(?P<end></span>)|(?P<text>[^<]+)')
_KEPT: Final = re.compile(r"\{#(\d{1,9})\}")
# Tags of HTML inside the messages of programs, see `tags_of`; control characters end a sentence, too.
HTML_TAG: Final = re.compile(
    r"(?P<stop>[\a\n\t]|</?(?:br|p|div|li|ul|ol|h[1-6]|hr|table|tr|td|th)(?:\s[^<>]*)?/?>)"
    r"|<(?P<end>/)?(?P<name>[A-Za-z][\w:.-]*)(?:\s[^<>]*)?>|<[A-Za-z][\w:.-]*(?:\s[^<>]*)?/>",
    re.IGNORECASE,
)
_DEPTH: Final = 64  # nesting levels of pairs; the two tags of a pair farther out stand alone
_LETTER: Final = re.compile(r"[^\W\d_]")


class Kind(Enum):
    """The kinds of tokens."""

    TEXT = auto()
    BEGIN = auto()
    END = auto()
    ALONE = auto()
    BREAK = auto()
    KEPT = auto()


class Token(NamedTuple):
    """A piece of text, or a tag.

    Attributes:
        kind: the kind of the token.
        text: the text without character references; "" for a tag.
        tag: the number of the tag, the same for both tags of a pair; -1 for text.
    """

    kind: Kind
    text: str = ""
    tag: int = -1


class Tag(NamedTuple):
    """Where a tag stands in the source of a text.

    Attributes:
        start: the index of its first character.
        stop: the index after its last character.
        kind: BEGIN for a possible first tag of a pair; END for a possible second one; ALONE, BREAK or KEPT.
        name: the same for both tags of a pair, in lower case; "" for other tags.
        written: what a translation has in its place; "": the same characters.
    """

    start: int
    stop: int
    kind: Kind
    name: str = ""
    written: str = ""

    def source(self, text: str) -> str:
        """Give what a translation of the text has in the place of the tag."""
        return self.written or text[self.start : self.stop]


_ELEMENTS: Final = {Kind.BEGIN: "span", Kind.ALONE: "wbr", Kind.BREAK: "br"}
_KINDS: Final = {element: kind for kind, element in _ELEMENTS.items()}


def to_html(tokens: Iterable[Token]) -> str:
    """Write tokens as HTML; pairs are nested."""
    return "".join(map(_written, tokens))


def from_html(source: str, original: Iterable[Token]) -> list[Token]:
    """Read tokens from HTML that `to_html` wrote, translated or not.

    Args:
        source: the HTML.
        original: the tokens that `to_html` wrote.

    Raises:
        ValueError: the HTML has a tag that the original lacks, or its pairs are not nested.
    """
    known = {token.tag: token.kind for token in original if token.kind not in (Kind.TEXT, Kind.END)}
    tokens: list[Token] = []
    opened: list[int] = []
    done = 0
    while done < len(source):
        found = _READ.match(source, done)
        if found is None or (found["name"] and known.get(int(found["tag"])) is not _KINDS[found["name"]]):
            raise ValueError(f"a translation has a tag that its text has not: {source[done : done + 40]!r}")
        done = found.end()
        if found["text"]:
            tokens += _texts(html.unescape(found["text"]), known)
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
    """Tell whether the tokens hold text to translate, which is at least one letter."""
    return any(has_letter(token.text) for token in tokens)


def has_letter(text: str) -> bool:
    """Tell whether a text has a letter of any language."""
    return _LETTER.search(text) is not None


class Tagged(NamedTuple):
    """A text with its tags written inline, as in <b>this</b>.

    Attributes:
        tokens: the tokens of the text.
        sources: for each tag, its source and the source of its end tag.
    """

    tokens: list[Token]
    sources: list[tuple[str, str]]

    @classmethod
    def read(cls, text: str, pattern: re.Pattern[str]) -> "Tagged":
        """Find tags by a pattern, see `tags_of`."""
        return cls.of(text, tags_of(text, pattern))

    @classmethod
    def of(cls, text: str, tags: Sequence[Tag]) -> "Tagged":
        """Split a text at its tags.

        Args:
            text: any text.
            tags: its tags in their order, without overlaps.
        """
        ends = _pairs(tags)
        tagged = cls([], [])
        numbers: dict[int, int] = {}  # the numbers of pairs, by the start of their end tags
        done = 0
        for tag in tags:
            tagged.write(text[done : tag.start])
            done = tag.stop
            source = tag.source(text)
            if tag.start in numbers:
                tagged.tokens.append(Token(Kind.END, tag=numbers[tag.start]))
            elif end := ends.get(tag.start):
                numbers[end.start] = len(tagged.sources)
                tagged.tag(Kind.BEGIN, source, end.source(text))
            else:
                tagged.tag(tag.kind if tag.kind in (Kind.BREAK, Kind.KEPT) else Kind.ALONE, source)
        tagged.write(text[done:])
        return tagged

    def write(self, text: str) -> None:
        """Add text."""
        if text:
            self.tokens.append(Token(Kind.TEXT, text))

    def tag(self, kind: Kind, source: str, end: str = "") -> None:
        """Add a tag with its source."""
        self.tokens.append(Token(kind, tag=len(self.sources)))
        self.sources.append((source, end))

    def source(self, tokens: Iterable[Token]) -> str:
        """Write tokens of this text, or of its translation, in the source format."""
        return "".join(
            token.text if token.kind is Kind.TEXT else self.sources[token.tag][token.kind is Kind.END]
            for token in tokens
        )


def tags_of(text: str, pattern: re.Pattern[str]) -> list[Tag]:
    """Find tags in a text.

    Args:
        text: any text.
        pattern: matches a tag. Its groups give the kind: `name` for a tag that can be one of a pair, with `end` for the
            second of the pair; `stop` for a tag that ends a sentence; without groups the tag stands alone.
    """
    return list(map(_found, pattern.finditer(text)))


def standing(tokens: Sequence[Token]) -> list[Token]:
    """Let kept words that touch a letter or digit stand alone: they are no words of their own."""
    touching = {*_touching(tokens, range(len(tokens)), -1), *_touching(tokens, reversed(range(len(tokens))), 0)}
    return [token._replace(kind=Kind.ALONE) if n in touching else token for n, token in enumerate(tokens)]


def _touching(tokens: Sequence[Token], order: Iterable[int], edge: int) -> Iterator[int]:
    """Yield the kept words that touch a letter or digit: the `edge` of the text before them in this order."""
    near = ""
    for number in order:
        token = tokens[number]
        if token.kind is Kind.KEPT and near.isalnum():
            yield number
        if token.kind is Kind.BREAK:
            near = ""
        elif token.kind is Kind.TEXT and token.text:
            near = token.text[edge]


def _written(token: Token) -> str:
    if token.kind is Kind.TEXT:
        return html.escape(token.text, quote=False)
    if token.kind is Kind.KEPT:
        return f"{{#{token.tag}}}"
    return "</span>" if token.kind is Kind.END else f'<{_ELEMENTS[token.kind]} id="{token.tag}">'


def _texts(text: str, known: Mapping[int, Kind]) -> Iterator[Token]:
    """Split text at the placeholders of kept words."""
    done = 0
    for found in _KEPT.finditer(text):
        if known.get(int(found[1])) is Kind.KEPT:
            if done < found.start():
                yield Token(Kind.TEXT, text[done : found.start()])
            yield Token(Kind.KEPT, tag=int(found[1]))
            done = found.end()
    if done < len(text):
        yield Token(Kind.TEXT, text[done:])


def _found(found: re.Match[str]) -> Tag:
    groups = found.groupdict()
    if name := groups.get("name"):
        return Tag(*found.span(), Kind.END if groups["end"] else Kind.BEGIN, name.lower())
    return Tag(*found.span(), Kind.BREAK if groups.get("stop") else Kind.ALONE)


def _pairs(tags: Iterable[Tag]) -> dict[int, Tag]:
    """Map the start of each pair's first tag to its second tag; of two overlapping pairs, only one counts."""
    opened: deque[Tag] = deque(maxlen=_DEPTH)
    pairs: dict[int, Tag] = {}
    for tag in tags:
        if tag.kind is Kind.BEGIN:
            opened.append(tag)
        elif tag.kind is Kind.END and any(each.name == tag.name for each in opened):
            while (begin := opened.pop()).name != tag.name:
                pass
            pairs[begin.start] = tag
    return pairs
