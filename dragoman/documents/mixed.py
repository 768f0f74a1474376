"""XML with text and elements side by side, as in OpenDocument and XLIFF: to tokens, and back."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from lxml import etree

from dragoman.documents.inline import HTML_TAG, Kind, Tagged, Token, standing

_BLANKS: Final = re.compile(r"[ \t\n]+")


class Vocabulary(NamedTuple):
    """The roles of a format's elements; any other element stands alone.

    Attributes:
        holds: tells whether an element holds text of the surrounding sentence.
        breaks: tells whether an element ends a sentence.
        stands: tells whether an element stands for words of the sentence, such as a number or a name.
        blank: the name of the element for blanks; "": the format has none.
        dropped: the name of an element that a changed text makes meaningless; "": the format has none.
        html: whether the text may have tags of HTML; only such a text can keep lines.
    """

    holds: "Callable[[etree._Element], bool]"
    breaks: "Callable[[etree._Element], bool]"
    stands: "Callable[[etree._Element], bool]"
    blank: str = ""
    dropped: str = ""
    html: bool = False


class MixedText:
    """The content of an element.

    Attributes:
        tokens: the tokens of its text.
    """

    def __init__(self, element: "etree._Element", vocabulary: Vocabulary, *, keeps_lines: bool = False) -> None:
        """Read an element without changing it.

        Args:
            element: the element with text.
            vocabulary: the vocabulary of its format.
            keeps_lines: whether a line break in the text ends a line; else it counts as a blank.
        """
        self._element, self._vocabulary, self._keeps_lines = element, vocabulary, keeps_lines
        self._tags: list[etree._Element | tuple[str, str]] = []
        self._blanks: dict[int, etree._Element] = {}  # by the places of their tokens
        self.tokens: list[Token] = []
        self._read(element)
        # Blanks at the ends are no part of the text: as characters, the format would drop them.
        places = range(len(self.tokens))
        head = list(self._outer(places, Kind.BEGIN))
        tail = list(self._outer(places[::-1], Kind.END))[::-1]
        self._head, self._tail = [self._blanks[place] for place in head], [self._blanks[place] for place in tail]
        outer = {*head, *tail}
        self.tokens = standing([token for place, token in enumerate(self.tokens) if place not in outer])

    def rewrite(self, tokens: Sequence[Token]) -> None:
        """Put a translation into the element."""
        holders = [self._element]
        _empty(self._element)
        _append(self._element, self._head)
        for token in tokens:
            tag = (token.text, "") if token.kind is Kind.TEXT else self._tags[token.tag]
            if isinstance(tag, tuple):
                _append_text(holders[-1], tag[token.kind is Kind.END])
            elif token.kind is Kind.END:
                holders.pop()
            else:
                tag.tail = None
                holders[-1].append(tag)
                if token.kind is Kind.BEGIN:
                    _empty(tag)
                    holders.append(tag)
        _append(self._element, self._tail)

    def _read(self, parent: "etree._Element") -> None:
        vocabulary = self._vocabulary
        self._write(parent.text)
        for child in parent:
            if vocabulary.blank and child.tag == vocabulary.blank:
                self._blanks[len(self.tokens)] = child
                self._write(" ")
            elif not isinstance(child.tag, str):  # a comment
                self._add(Kind.ALONE, child)
            elif vocabulary.holds(child) and not _is_blank(child, vocabulary.blank):
                number = self._add(Kind.BEGIN, child)
                self._read(child)
                self.tokens.append(Token(Kind.END, tag=number))
            elif child.tag != vocabulary.dropped:
                stands = Kind.KEPT if vocabulary.stands(child) else Kind.ALONE
                self._add(Kind.BREAK if vocabulary.breaks(child) else stands, child)
            self._write(child.tail)

    def _outer(self, places: Iterable[int], kind: Kind) -> Iterator[int]:
        """Yield the places of the blanks before the first word; tags of this kind may be before it, too."""
        for place in places:
            token = self.tokens[place]
            if place in self._blanks:
                yield place
            elif token.kind is not kind and not (token.kind is Kind.TEXT and _BLANKS.fullmatch(token.text)):
                return

    def _write(self, text: str | None) -> None:
        if text and not self._vocabulary.html:
            self.tokens.append(Token(Kind.TEXT, text))
        elif text:
            tagged = Tagged.read(text if self._keeps_lines else _BLANKS.sub(" ", text), HTML_TAG)
            first = len(self._tags)
            self.tokens += [token._replace(tag=token.tag + first * (token.tag >= 0)) for token in tagged.tokens]
            self._tags += tagged.sources

    def _add(self, kind: Kind, tag: "etree._Element") -> int:
        """Add a tag and return its number."""
        self._tags.append(tag)
        self.tokens.append(Token(kind, tag=len(self._tags) - 1))
        return len(self._tags) - 1


def _is_blank(element: "etree._Element", blank: str) -> bool:
    """Tell whether an element holds elements for blanks alone, such as a line to fill in: it stays as it is."""
    children = list(element.iterchildren())  # len() of an lxml element would count all children
    if not children or any(child.tag != blank for child in children):
        return False
    return not any((text or "").strip() for text in (element.text, *(child.tail for child in children)))


def _empty(element: "etree._Element") -> None:
    element.text = None
    element[:] = []


def _append(holder: "etree._Element", blanks: "Iterable[etree._Element]") -> None:
    for blank in blanks:
        blank.tail = None
        holder.append(blank)


def _append_text(holder: "etree._Element", text: str) -> None:
    last = next(holder.iterchildren(reversed=True), None)  # len() of an lxml element would count all children
    if last is None:
        holder.text = (holder.text or "") + text
    else:
        last.tail = (last.tail or "") + text
