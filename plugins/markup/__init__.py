"""HTML and XML: the texts between tags, and translations with the tags put back in."""

from collections.abc import Iterator

from plugins.markup import html, xml
from plugins.markup.html import Block
from service.options import XmlTags


def parse(text: str, tags: XmlTags | None) -> Iterator[str | Block]:
    """Yield, in the order of the source, what is to stay as it is, and what is text.

    Args:
        text: any text.
        tags: what the names of XML's elements mean; None: it is HTML.
    """
    return html.parse(text) if tags is None else xml.parse(text, tags)
