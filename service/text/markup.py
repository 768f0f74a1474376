"""HTML and XML, which a plugin parses into parts that stay as they are and the texts between the tags."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

from service import plugins
from service.options import XmlTags
from service.text.piece import Piece


class Block(Protocol):
    """Text up to a tag that ends a sentence."""

    @property
    def text(self) -> str:
        """Its text, without tags."""

    def protect(self, split: Callable[[str], Iterable[Piece]]) -> Iterator[Piece]:
        """Split the text into pieces: kept text has its tags, text to translate has none."""


Blocks: TypeAlias = Iterable[str | Block]  # in the order of the source; a str stays as it is


def parse(text: str, tags: XmlTags | None) -> Sequence[str | Block]:
    """Read a text.

    Args:
        tags: what the names of XML's elements mean; None: it is HTML.

    Raises:
        InvalidRequestError: no plugin can do that.
    """
    read: Callable[[str, XmlTags | None], Blocks] = plugins.needed(plugins.MARKUP, "reads no HTML and XML")
    return list(read(text, tags))


def protect(blocks: Blocks, split: Callable[[str], Iterable[Piece]]) -> Iterator[Piece]:
    """Split the texts, and take the tags out of each piece."""
    for block in blocks:
        if isinstance(block, str):
            yield Piece(block)
        else:
            yield from block.protect(split)
