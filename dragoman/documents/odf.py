"""Paragraphs of OpenDocument: text and elements side by side (text:p, text:h, text:span, text:a), ISO/IEC 26300."""

from collections.abc import Iterator, Sequence
from typing import Final

from lxml import etree

from dragoman.documents.inline import Kind, Token

_TEXT: Final = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_PARAGRAPHS: Final = (f"{_TEXT}p", f"{_TEXT}h")
_HOLDERS: Final = frozenset({f"{_TEXT}span", f"{_TEXT}a"})
_BREAKS: Final = frozenset({f"{_TEXT}line-break", f"{_TEXT}tab"})
_BLANKS: Final = f"{_TEXT}s"
_DELETED: Final = f"{_TEXT}tracked-changes"
_DROPPED: Final = f"{_TEXT}soft-page-break"


class OdfParagraph:
    """A paragraph or heading.

    Attributes:
        tokens: of its text.
    """

    def __init__(self, element: "etree._Element") -> None:
        """Read a paragraph, which stays as it is."""
        self._element = element
        self._tags: list[etree._Element] = []
        self.tokens: list[Token] = []
        self._read(element)

    def rewrite(self, tokens: Sequence[Token]) -> None:
        """Put a translation into the paragraph."""
        holders = [self._element]
        _empty(self._element)
        for token in tokens:
            if token.kind is Kind.TEXT:
                _append_text(holders[-1], token.text)
            elif token.kind is Kind.END:
                holders.pop()
            else:
                element = self._tags[token.tag]
                element.tail = None
                holders[-1].append(element)
                if token.kind is Kind.BEGIN:
                    _empty(element)
                    holders.append(element)

    def _read(self, parent: "etree._Element") -> None:
        self._write(parent.text)
        for child in parent:
            if child.tag == _BLANKS:
                self._write(" ")
            elif child.tag in _HOLDERS:
                number = self._add(Kind.BEGIN, child)
                self._read(child)
                self.tokens.append(Token(Kind.END, tag=number))
            elif child.tag != _DROPPED:
                self._add(Kind.BREAK if child.tag in _BREAKS else Kind.ALONE, child)
            self._write(child.tail)

    def _write(self, text: str | None) -> None:
        if text:
            self.tokens.append(Token(Kind.TEXT, text))

    def _add(self, kind: Kind, element: "etree._Element") -> int:
        """Add a tag; gives its number."""
        self._tags.append(element)
        self.tokens.append(Token(kind, tag=len(self._tags) - 1))
        return len(self._tags) - 1


def odf_paragraphs(root: "etree._Element") -> Iterator[OdfParagraph]:
    """Yield the paragraphs of a part, but for those that were deleted and are kept as changes."""
    for element in root.iter(*_PARAGRAPHS):
        if next(element.iterancestors(_DELETED), None) is None:
            yield OdfParagraph(element)


def _empty(element: "etree._Element") -> None:
    element.text = None
    element[:] = []


def _append_text(holder: "etree._Element", text: str) -> None:
    if len(holder):
        holder[-1].tail = (holder[-1].tail or "") + text
    else:
        holder.text = (holder.text or "") + text
