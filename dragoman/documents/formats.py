"""The formats of documents, by file suffix; a format is imported only for a document of this format."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import PurePath
from typing import Final

from dragoman.documents.document import Document
from dragoman.loading import load

MAX_BYTES: Final = 64 * 2**20  # of a document
# In memory even a short line takes some hundred bytes.
MAX_LINES: Final = 500_000

_READERS: Final = {
    ".srt": "dragoman.documents.subtitles:read_srt",
    ".vtt": "dragoman.documents.subtitles:read_vtt",
    ".docx": "dragoman.documents.office:read_docx",
    ".pptx": "dragoman.documents.office:read_pptx",
    ".odt": "dragoman.documents.office:read_odt",
    ".po": "dragoman.documents.po:read_po",
    ".pot": "dragoman.documents.po:read_po",
    ".xlf": "dragoman.documents.xliff:XliffDocument",
    ".xliff": "dragoman.documents.xliff:XliffDocument",
    ".txt": "dragoman.documents.plain:PlainText",
    ".md": "dragoman.documents.markdown:MarkdownDocument",
    ".markdown": "dragoman.documents.markdown:MarkdownDocument",
    ".html": "dragoman.documents.page:HtmlDocument",
    ".htm": "dragoman.documents.page:HtmlDocument",
}
SUFFIXES: Final = tuple(_READERS)
# Libraries of some formats that a server may lack; the other formats need none.
_LIBRARIES: Final = {
    "dragoman.documents.office": "lxml",
    "dragoman.documents.xliff": "lxml",
    "dragoman.documents.po": "polib",
    "dragoman.documents.markdown": "markdown_it",
}
_SAY_LANGUAGE: Final = ("dragoman.documents.page", "dragoman.documents.xliff")  # formats that can state a language


def installed_suffixes() -> Sequence[str]:
    """List the suffixes of the formats whose libraries are installed, without importing them, to save memory."""
    needed = {suffix: _LIBRARIES.get(reader.partition(":")[0]) for suffix, reader in _READERS.items()}
    return [suffix for suffix, library in needed.items() if library is None or find_spec(library)]


def format_of(name: str) -> str:
    """Give the format of a file; suffixes of the same format give the same value.

    Args:
        name: the name of the file.

    Raises:
        ValueError: the suffix belongs to no format.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix not in _READERS:
        raise ValueError(f"must end in {', '.join(SUFFIXES)}, is {name!r}")
    return _READERS[suffix]


def read_document(name: str, content: bytes) -> Document:
    """Read a document.

    Args:
        name: the name of the file; its suffix decides the format.
        content: the content of the file.

    Raises:
        ValueError: the content is too large, or does not have the format.
        ModuleNotFoundError: a library of the format is not installed.
    """
    reader = load(format_of(name))
    if len(content) > MAX_BYTES:
        raise ValueError(f"must be at most {MAX_BYTES} bytes")
    if max(content.count(b"\n"), content.count(b"\r")) > MAX_LINES:
        raise ValueError(f"must have at most {MAX_LINES} lines")
    document: Document = reader(content)
    return document


def say_language(name: str, content: bytes, source: str, target: str) -> bytes:
    """Write the language into a translated document, if its format can state a language.

    Args:
        name: the name of the file.
        content: the content of the file.
        source: language that the document was translated from; "": unknown.
        target: language that the document was translated into; "": unknown, and the content stays unchanged.
    """
    module = format_of(name).partition(":")[0]
    if not target or module not in _SAY_LANGUAGE:
        return content
    said: bytes = load(f"{module}:say_language")(content, source, target)
    return said
