"""XML from untrusted sources: entities are refused, no other file is read, the depth is bounded."""

import re
from typing import Final

from lxml import etree

_NOT_ALLOWED: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MAX_BYTES: Final = 64 * 2**20  # of a file; the parsed tree takes several times as much memory
MAX_TAGS: Final = 2_000_000  # of a document; in memory even a short tag takes some hundred bytes
XML_SPACE: Final = "{http://www.w3.org/XML/1998/namespace}space"


def parse(content: bytes, max_tags: int = MAX_TAGS) -> "etree._ElementTree":
    """Read XML.

    Args:
        content: the content of a file.
        max_tags: the number of tags still allowed in the document.

    Raises:
        ValueError: the content is no XML, is too large, has too many tags, or has a document type, whose entities could
            expand without end.
    """
    if len(content) > MAX_BYTES:
        raise ValueError(f"must have at most {MAX_BYTES} bytes of XML")
    if content.count(b"<") > max_tags:
        raise ValueError(f"must not have more tags: a document may have {MAX_TAGS}")
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, huge_tree=False, load_dtd=False, strip_cdata=False
    )
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(f"is no XML: {' '.join(str(error.msg).split())}") from error
    tree = root.getroottree()
    if tree.docinfo.internalDTD is not None:
        raise ValueError("must have no document type (DOCTYPE)")
    return tree


def serialized(tree: "etree._ElementTree") -> bytes:
    """Write XML as UTF-8."""
    standalone = ' standalone="yes"' if tree.docinfo.standalone else ""
    declaration = f'<?xml version="1.0" encoding="UTF-8"{standalone}?>\n'
    return declaration.encode() + bytes(etree.tostring(tree, encoding="UTF-8", xml_declaration=False))


def allowed(text: str) -> str:
    """Remove the characters that XML cannot hold."""
    return _NOT_ALLOWED.sub("", text)
