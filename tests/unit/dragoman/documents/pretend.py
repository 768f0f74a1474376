"""A translator for tests of formats: it knows no language, and keeps what a server keeps."""

import re

from dragoman.documents.document import Document


def shouted(html: str) -> str:
    """Write the words of HTML in capitals; tags and references stay."""
    return re.sub(r"<[^<>]*>|&\w+;|[^<&]+", lambda found: found[0] if found[0][0] in "<&" else found[0].upper(), html)


def translated(document: Document) -> bytes:
    return document.write([shouted(text.html) for text in document.texts])
