"""HTML and XML: extracts the texts between tags, and puts the tags into translations."""

from collections.abc import Iterator

from plugins.markup import html, xml
from plugins.markup.html import Block
from service.options import XmlTags


def parse(text: str, tags: XmlTags | None) -> Iterator[str | Block]:
    """Yield the kept source and the blocks of text, in the order of the source.

    Args:
        text: any text.
        tags: the meaning of XML element names; None: the text is HTML.
    """
    return html.parse(text) if tags is None else xml.parse(text, tags)
