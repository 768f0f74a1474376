"""HTML: extracts the texts between tags, and puts them back.

turbohtml finds the tags, comments and character references; all source that is no text is returned byte for byte. The
tag of a block or a line break ends a sentence. Other tags do not: a sentence is translated as a whole, and
`inline_tags` puts its tags into the translation. No HTML is an error: a tag that HTML's rules do not recognise is text.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from turbohtml import Token, TokenType, tokenize

from dragoman.documents.html_tags import INLINE, VOID, ends_of_elements
from plugins.markup.inline_tags import TaggedText
from plugins.markup.mark import InlineTag, is_read, overlap, partners
from service.rewriting import Edit, Rewriting
from service.text.piece import Piece

_UNSEEN: Final = frozenset({"iframe", "noembed", "noframes", "script", "style", "svg", "template"})
# Elements kept with their content, like those with translate="no" or class="notranslate".
_KEPT: Final = _UNSEEN | {"code", "kbd", "math", "plaintext", "pre", "samp", "textarea", "tt", "var", "xmp"}
_NESTING: Final = {TokenType.START_TAG: 1, TokenType.END_TAG: -1}
KEPT_CHARACTERS: Final = 200  # of a kept element inside a sentence; one with more ends the sentence
# For turbohtml, the content of this element is plain text; a reader without scripts sees its tags.
_NOSCRIPT: Final = re.compile(r"(?:(?<=<)|(?<=</))noscript", re.IGNORECASE)
_NO_LETTER: Final = re.compile(r"\W")
_MORE_BLANKS: Final = re.compile("(?<= ) ")  # several show as one, and make no column as in plain text

# Characters that stand for themselves, but could begin a tag or reference before the following translation.
_BARE: Final = {"<": "&lt;", "&": "&amp;"}

BLANKS: Final = str.maketrans("\n\t\r\f", "    ")  # a line break between tags ends no line


class Block(NamedTuple):
    """The text up to a tag that ends a sentence.

    Attributes:
        text: the text, with character references resolved, and blanks for line breaks.
        raw: the source of each character; empty for characters that are part of a mark's source.
        marks: the marks, by place.
        hard_blank: the source of a non-breaking blank in a translation.
    """

    text: str
    raw: Sequence[str]
    marks: Sequence[InlineTag]
    hard_blank: str = "&nbsp;"

    def protect(self, split: Callable[[str], Iterable[Piece]]) -> Iterator[Piece]:
        """Split the text into pieces: kept parts get their tags back, text to translate has none."""
        begun = start = done = 0
        inside = False
        ends = partners(self.marks)
        for piece in split(_MORE_BLANKS.sub("\u2002", self._with_words())):
            start += len(piece.kept)
            inside |= piece.inside
            if not piece.text:
                continue
            before, stop = done, start + len(piece.text)
            bare = begun + len(self.text[begun:start].rstrip())  # only blanks follow, up to the piece
            first = self._first_inside(done, bare, start, stop, ends)
            done = self._last_inside(first, start, stop, ends)
            kept = self._verbatim(begun, start, self.marks[before:first], escaped=True)
            marks = [mark._replace(place=mark.place - start) for mark in self.marks[first:done]]
            text = self.text[start:stop]
            yield Piece(kept, text, inside, TaggedText(text, marks, self.hard_blank))
            begun = start = stop
            inside = False
        yield Piece(self._verbatim(begun, start, self.marks[done:], escaped=False), inside=inside)

    def _with_words(self) -> str:
        """Give the text with one word, of as many characters, in place of the content of each kept element."""
        spans = [(mark.place, mark.place + mark.width) for mark in self.marks if mark.width]
        words = [span for span in spans if is_read(self.text, *span)]
        if not words:
            return self.text
        return Rewriting(self.text, [Edit(*span, _NO_LETTER.sub("_", self.text[slice(*span)])) for span in words]).text

    def _first_inside(self, index: int, bare: int, start: int, stop: int, ends: Sequence[int | None]) -> int:
        """Find the first mark of a piece: after its start, or at its start if its element ends inside the piece.

        `index` is that of the first mark after the previous piece; from `bare` to `start`, the text is blank.
        """
        while index < len(self.marks) and self.marks[index].place + bool(self.marks[index].width) <= start:
            end = ends[index]
            if self.marks[index].place >= bare and end is not None and start < self.marks[end].place < stop:
                break
            index += 1
        return index

    def _last_inside(self, first: int, start: int, stop: int, ends: Sequence[int | None]) -> int:
        """Find the end of the marks of a piece: before its stop, or at it if their element begins inside the piece."""
        index = last = first
        while index < len(self.marks) and self.marks[index].place <= stop:
            begin = ends[index]
            begins_inside = begin is not None and first <= begin < index and self.marks[begin].place > start
            if self.marks[index].place < stop or begins_inside:
                last = index + 1
            index += 1
        return last

    def _verbatim(self, start: int, stop: int, marks: Sequence[InlineTag], *, escaped: bool) -> str:
        pieces: list[str] = []
        for mark in marks:
            pieces += (*self.raw[start : mark.place], mark.source)
            start = mark.place
        rest = self.raw[start:stop]
        return "".join([*pieces, *([_BARE.get(source, source) for source in rest] if escaped else rest)])


def parse(html: str) -> Iterator[str | Block]:
    """Yield the kept source and the blocks of text, in the order of the source."""
    tokens, rest = _tokens(html)
    ends = ends_of_elements([(token.tag or "", _NESTING.get(token.type, 0)) for token, _ in tokens])
    block = OpenBlock()
    index = 0
    while index < len(tokens):
        token, source = tokens[index]
        name = token.tag or ""
        begun, index = index, index + 1
        if token.type is TokenType.START_TAG and _is_kept(token):
            index = ends[begun] + 1
            source = "".join(source for _, source in tokens[begun:index])
            content = "" if name in _UNSEEN else "".join(_text(*token) for token in tokens[begun:index])
            # Without an end tag, the element would include the following text wherever the translation puts it.
            ended = tokens[index - 1][0].type is TokenType.END_TAG and tokens[index - 1][0].tag == name
            if ended and name in INLINE and len(content) <= KEPT_CHARACTERS:
                block.mark(source, content=content.strip())
                continue
        elif token.type in (TokenType.TEXT, TokenType.CHARACTER_REFERENCE):
            block.write(_text(token, source), source)
            continue
        elif name in INLINE or (not name and token.type is not TokenType.DOCTYPE):
            block.mark(source, closes=token.type is TokenType.END_TAG, name="" if name in VOID else name)
            continue
        yield block.close()
        yield source
        block = OpenBlock()
    yield block.close()
    yield rest


class OpenBlock:
    """A block during parsing.

    Args:
        hard_blank: see :class:`Block`.
    """

    def __init__(self, hard_blank: str = "&nbsp;") -> None:
        self._hard_blank = hard_blank
        self._texts: list[str] = []
        self._raw: list[str] = []
        self._marks: list[InlineTag] = []

    def write(self, text: str, source: str) -> None:
        """Add text, with a source for each character, or one source for all of them."""
        self._texts.append(text)
        self._raw += source if len(source) == len(text) else [source, *[""] * (len(text) - 1)]

    def mark(self, source: str, *, closes: bool = False, content: str = "", name: str = "") -> None:
        """Add a mark."""
        self._marks.append(InlineTag(len(self._raw), source, closes, len(content), name))
        self._texts.append(content)
        self._raw += [""] * len(content)

    def close(self) -> Block:
        """Finish the block."""
        text, raw, marks = _without_gaps("".join(self._texts), self._raw, _joined(self._marks))
        return Block(text, raw, marks, self._hard_blank)


def _without_gaps(
    text: str, raw: Sequence[str], marks: Sequence[InlineTag]
) -> tuple[str, Sequence[str], Sequence[InlineTag]]:
    """If a mark has blanks on both sides, move the second into it: the model sees one, a translation gets both.

    Only for a mark that is not one of a pair, and is alone in its place.
    """
    gaps: list[int] = []
    moved = []
    for mark, following in zip(marks, [*[mark.place for mark in marks[1:]], -1], strict=False):
        place = mark.place
        moved.append(mark._replace(place=place - len(gaps)))
        alone = not (mark.name or mark.closes or mark.width) and place != following
        if alone and place > 0 and text[place - 1 : place + 1] == "  ":
            moved[-1] = moved[-1]._replace(source=mark.source + raw[place])
            gaps.append(place)
    if not gaps:
        return text, raw, marks
    bounds = list(pairwise([-1, *gaps, len(text)]))
    rest = [part for before, gap in bounds for part in raw[before + 1 : gap]]
    return "".join(text[before + 1 : gap] for before, gap in bounds), rest, _joined(moved)


def _joined(marks: Sequence[InlineTag]) -> list[InlineTag]:
    """Join marks in the same place, except those of elements with text; a closing and another mark stay separate."""
    joined: list[tuple[InlineTag, list[str]]] = []  # each mark with the sources to join
    ends = partners(marks)
    all_matter = overlap(marks, ends)
    for mark, end in zip(marks, ends, strict=True):
        holds = all_matter or (end is not None and marks[end].place != mark.place)
        bare = mark._replace(source="", name=mark.name if holds else "")
        if joined and not bare.name and joined[-1][0] in (bare, bare._replace(closes=False)):
            joined[-1][1].append(mark.source)
        else:
            joined.append((bare, [mark.source]))
    return [mark._replace(source="".join(sources)) for mark, sources in joined]


def _tokens(html: str) -> tuple[list[tuple[Token, str]], str]:
    """List the tokens, each with its source, and the unfinished tag at the end."""
    tokens = []
    start = 0
    # turbohtml reads CR LF as one character. With another blank for CR, its tokens cover the source without gaps.
    read = _NOSCRIPT.sub("x-script", html.replace("\r", "\f"))
    for token in tokenize(read, resolve_references=False, capture_source=True):
        stop = start + len(token.data or "" if token.source is None else token.source)
        tokens.append((token, html[start:stop]))
        start = stop
    return tokens, html[start:]


def _text(token: Token, source: str) -> str:
    if token.type is TokenType.TEXT:
        return source.translate(BLANKS)
    return token.data or "" if token.type is TokenType.CHARACTER_REFERENCE else ""


def _is_kept(token: Token) -> bool:
    """Tell whether the element of a start tag is not to be translated."""
    return token.tag not in VOID and (
        token.tag in _KEPT
        or (token.attr("translate") or "").lower() == "no"
        or "notranslate" in (token.attr("class") or "").split()
    )
