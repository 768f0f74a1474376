"""Paragraphs of OpenDocument (text:p, text:h), ISO/IEC 26300."""

import re
from collections.abc import Iterator
from typing import Final

from lxml import etree

from dragoman.documents.mixed import MixedText, Vocabulary

_TEXT: Final = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_PARAGRAPHS: Final = (f"{_TEXT}p", f"{_TEXT}h")
_NOT_READ: Final = (f"{_TEXT}tracked-changes", "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}annotation")
# Fields: what they show is computed, or filled in.
_FIELDS: Final = re.compile(
    rf"{re.escape(_TEXT)}(?:.*-(?:ref|get|input|date|time|count|set)|author-.*|sender-.*|chapter|conditional-text|"
    "creator|database-display|date|expression|file-name|initial-creator|page-number|placeholder|sequence|subject|time|"
    "title|user-defined)"
)
_VOCABULARY: Final = Vocabulary(
    holds=lambda element: element.tag in (f"{_TEXT}span", f"{_TEXT}a"),
    breaks=lambda element: element.tag in (f"{_TEXT}line-break", f"{_TEXT}tab"),
    stands=lambda element: _FIELDS.fullmatch(element.tag) is not None,
    blank=f"{_TEXT}s",
    dropped=f"{_TEXT}soft-page-break",
)


def odf_paragraphs(root: "etree._Element") -> Iterator[MixedText]:
    """Yield the paragraphs of a part, without comments and deleted paragraphs that are kept as tracked changes."""
    for element in root.iter(*_PARAGRAPHS):
        if next(element.iterancestors(*_NOT_READ), None) is None:
            yield MixedText(element, _VOCABULARY)
