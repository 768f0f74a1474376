"""Markdown: each paragraph, heading and table cell is a text; all other content stays byte for byte."""

import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token as MarkdownToken

from dragoman.documents.document import DocumentText, StatedLanguages, lines_of
from dragoman.documents.inline import Kind, Tagged, Token, from_html, has_words, to_html
from dragoman.documents.markdown_containers import COLUMN
from dragoman.documents.markdown_tags import find_tags, make_parser

_FRONT_MATTER: Final = re.compile(
    r"\ufeff?(?P<fence>---|\+\+\+)[ \t]*\n.*?\n(?:(?P=fence)|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL
)
_MAX_BYTES: Final = 2**19  # at worst, for example a file of brackets, this takes half a minute
_CELLS: Final = ("th_open", "td_open")
_BLANKS: Final = re.compile(r"[ \t\n]+")
_LINE_BREAK: Final = re.compile(r"[ \t]*\n[ \t]*")
_SPECIAL: Final = re.compile(r"[\\`*_\[\]<>&~|#+=!$-]|(?<=\d)[.)]|:(?=::)")
# Blanks other than those of lines. The parser removes them at the ends of a text, unless they are references.
_WIDE: Final = re.compile(r"[^\S \t\n]")
_WIDE_AT_ENDS: Final = re.compile(rf"\A{_WIDE.pattern}+|(?<!{_WIDE.pattern}){_WIDE.pattern}+\Z")
# A word that should not begin a line: it might start a list, a quotation, a heading, a footnote or HTML.
_BEGINS_BLOCK: Final = re.compile(r"[-+*=#>|:]|\[\^|\d+[.)]$|<(?:[!?/]|[a-zA-Z](?![^<>\s]*[@:]))")
# A place in written text where the line may be broken. No input has this character: CommonMark replaces it.
_GAP: Final = "\0"
_GAPS_AT_END: Final = re.compile("\0+(?=[ \t]*\n)")


class _Block(NamedTuple):
    """A text of the document.

    Attributes:
        first: its first line, from 0.
        spans: where the text begins and ends in each of its lines.
        is_cell: whether the text is a table cell.
        text: the text with its tags.
    """

    first: int
    spans: Sequence[tuple[int, int]]
    is_cell: bool
    text: Tagged


class MarkdownDocument:
    """A file of Markdown.

    Attributes:
        texts: one for each paragraph, heading and cell with words.
        protects_placeholders: True: kept code becomes placeholders, too.
        languages: none.
        unwritten: the texts whose translations lack code, or would be read as something else.
    """

    protects_placeholders = True
    languages: Sequence[StatedLanguages] = ()

    def __init__(self, content: bytes) -> None:
        """Find the texts; raises ValueError if the content is not UTF-8, or is too large."""
        if len(content) > _MAX_BYTES:
            raise ValueError(f"must be at most {_MAX_BYTES} bytes of Markdown")
        self.unwritten: list[str] = []
        self._lines = lines_of(content)
        self._parser = make_parser()
        self._references: dict[str, Any] = {}
        self._blocks = [block for block in self._read() if has_words(block.text.tokens)]
        self.texts = [DocumentText(to_html(block.text.tokens), f"line {block.first + 1}") for block in self._blocks]

    def write(self, translations: Sequence[str | None]) -> bytes:
        """Give the content of the file; see `Document`."""
        lines = list(self._lines)
        unwritten = []
        # From the end, so that a replaced cell does not move the cells before it in the same line.
        for block, text, translation in reversed(list(zip(self._blocks, self.texts, translations, strict=True))):
            if translation is None:
                continue
            last = block.first + len(block.spans)
            written = self._rewritten(block, lines[block.first : last], translation)
            if written is None:
                unwritten.append(text.place)
            else:
                lines[block.first : last] = [written, *[""] * (len(block.spans) - 1)]
        self.unwritten = unwritten[::-1]
        return "".join(lines).encode()

    def _read(self) -> Iterator[_Block]:
        source = "".join(line.rstrip("\r\n") + "\n" for line in self._lines)
        head = found[0] if (found := _FRONT_MATTER.match(source)) else ""
        environment: dict[str, Any] = {}
        tokens = self._parser.parse(source[len(head) :].removeprefix("\ufeff"), environment)
        self._references = environment.get("references", {})
        above, done = head.count("\n"), (0, 0)
        for before, token in zip(["", *(token.type for token in tokens)], tokens, strict=False):
            if token.type != "inline" or token.map is None:
                continue
            first, is_cell = token.map[0] + above, before in _CELLS
            begin = token.meta.get(COLUMN)
            if is_cell:
                begin = done[1] if done[0] == first else 0
            spans = self._spans(token, first, begin, is_cell=is_cell)
            if spans:
                done = first, spans[-1][1]
                yield _Block(first, spans, is_cell, _tagged(token))

    def _spans(self, token: MarkdownToken, first: int, begin: int | None, *, is_cell: bool) -> list[tuple[int, int]]:
        """Find the spans of a text in its lines; none if the lines write it differently, as after a part of a tab.

        Args:
            token: the token of the text.
            first: its first line.
            begin: the earliest start in the first line; None: the text extends to the line ends.
            is_cell: whether the text is a table cell.
        """
        content = token.content.replace("|", "\\|") if is_cell else token.content
        spans = []
        for number, piece in enumerate(content.split("\n"), first):
            piece = piece.lstrip(" \t")
            line = self._lines[number]
            start = line.rfind(piece) if begin is None else line.find(piece, begin)
            if start < 0:
                return []
            spans.append((start, start + len(piece)))
        return spans

    def _rewritten(self, block: _Block, lines: Sequence[str], translation: str) -> str | None:
        """Write the lines of a block with a translation.

        Characters are escaped only where the parser would misread them. None, so that the lines stay: the translation
        lacks code, or it would be misread in any case, as a comment at the start of a line, which begins a block of
        HTML.
        """
        tokens = _translated(block.text, translation)
        if tokens is None:
            return None
        for escapes in (False, True):
            source = _source(block.text, tokens, escapes=escapes)
            written = _put(block, lines, source)
            if self._reads_as(source.replace(_GAP, " ") if block.is_cell else written, block.text, tokens):
                return written
        return None

    def _reads_as(self, written: str, text: Tagged, tokens: Sequence[Token]) -> bool:
        """Tell whether these lines parse as one text with these tokens."""
        source = "".join(line.lstrip(" \t") for line in lines_of(written.removeprefix("\ufeff").encode()))
        parsed = self._parser.parse(source, {"references": ChainMap({}, self._references)})
        texts = [_tagged(token) for token in parsed if token.type == "inline"]
        return len(texts) == 1 and _seen(texts[0], texts[0].tokens) == _seen(text, tokens)


def _tagged(token: MarkdownToken) -> Tagged:
    """Read the text of a token; escapes and line breaks are resolved."""
    tokens, sources = Tagged.of(token.content, find_tags(token.content, token.children or []))
    return Tagged([each._replace(text=unescapeAll(_LINE_BREAK.sub(" ", each.text))) for each in tokens], sources)


def _translated(text: Tagged, translation: str) -> list[Token] | None:
    """Read a translation; None, so that the text stays, if a kept part such as code does not appear exactly once."""
    tokens = from_html(translation, text.tokens)
    return tokens if _kept(tokens) == _kept(text.tokens) else None


def _kept(tokens: Iterable[Token]) -> list[int]:
    return sorted(token.tag for token in tokens if token.kind is Kind.KEPT)


def _source(text: Tagged, tokens: Sequence[Token], *, escapes: bool) -> str:
    """Write tokens; each blank at which a line may be broken becomes a gap."""

    def written(token: Token) -> str:
        special = _WIDE.sub(_reference, _SPECIAL.sub(r"\\\g<0>", token.text)) if escapes else token.text
        return _BLANKS.sub(_GAP, special)

    source = text.source([token._replace(text=written(token)) for token in tokens])
    return _WIDE_AT_ENDS.sub(_reference, _GAPS_AT_END.sub("", source.strip(_GAP)))


def _reference(found: re.Match[str]) -> str:
    """Write characters as references."""
    return "".join("&nbsp;" if each == "\xa0" else f"&#{ord(each)};" for each in found[0])


def _seen(text: Tagged, tokens: Iterable[Token]) -> list[tuple[bool, str]]:
    """Normalize tokens, so that tokens with the same meaning compare equal."""
    pieces = [(token.kind is Kind.TEXT, text.source([token])) for token in tokens]
    merged = [
        (is_text, "".join(piece for _, piece in group)) for is_text, group in groupby(pieces, lambda each: each[0])
    ]
    return [(is_text, _BLANKS.sub(" ", piece)) for is_text, piece in merged]


def _put(block: _Block, lines: Sequence[str], source: str) -> str:
    """Put a text into its lines; several lines become as many as it needs, none longer than the longest of them."""
    heads = [line[:start] for line, (start, _) in zip(lines, block.spans, strict=True)]
    rest = lines[-1][block.spans[-1][1] :]
    if block.is_cell:
        source = source.replace("|", "\\|")
    if len(lines) == 1:
        return heads[0] + source.replace(_GAP, " ") + rest
    end = lines[0][len(lines[0].rstrip("\r\n")) :]
    return end.join(_filled(source, heads, max(len(line.rstrip()) for line in lines))) + rest


def _filled(source: str, heads: Sequence[str], width: int) -> list[str]:
    """Break a text into lines.

    Args:
        source: the text.
        heads: the text before each line; further lines use the last head.
        width: the maximum length of a line.
    """
    lines: list[str] = []
    for forced in source.split("\n"):
        line = ""
        for word in filter(None, forced.lstrip(" \t").split(_GAP)):
            head = heads[min(len(lines), len(heads) - 1)]
            if line and len(f"{head}{line} {word}") > width and not _BEGINS_BLOCK.match(word):
                lines.append(head + line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(heads[min(len(lines), len(heads) - 1)] + line)
    return lines
