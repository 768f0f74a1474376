"""The common interface of documents of all formats."""

import io
from collections.abc import Sequence
from typing import NamedTuple, Protocol


class DocumentText(NamedTuple):
    """A text of a document.

    Attributes:
        html: the text as HTML, for the mime type text/html.
        place: the position of the text, for people, such as "cue 3".
    """

    html: str
    place: str


class Document(Protocol):
    """A document with texts to translate."""

    @property
    def texts(self) -> Sequence[DocumentText]:
        """The texts to translate, in their order."""

    @property
    def protects_placeholders(self) -> bool:
        """Whether placeholders in the texts must stay unchanged."""

    def write(self, translations: Sequence[str | None]) -> bytes:
        """Give the content of the translated document.

        Args:
            translations: the translation of each text, as HTML; None: the document keeps its text.
        """


def lines_of(content: bytes) -> list[str]:
    """Split text into lines with their line ends (LF, CRLF or CR).

    Raises:
        ValueError: the content is not UTF-8.
    """
    return list(io.StringIO(decoded(content), newline=""))


def decoded(content: bytes) -> str:
    """Decode text.

    Raises:
        ValueError: the content is not UTF-8.
    """
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start})") from error
