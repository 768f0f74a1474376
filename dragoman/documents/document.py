"""What a document is to those who translate it, whatever its format."""

import io
from collections.abc import Sequence
from typing import NamedTuple, Protocol


class DocumentText(NamedTuple):
    """A text of a document.

    Attributes:
        html: to be translated with the mime type text/html.
        place: where it stands, for people, such as "cue 3".
    """

    html: str
    place: str


class Document(Protocol):
    """A document whose texts are to be translated."""

    @property
    def texts(self) -> Sequence[DocumentText]:
        """Those that are to be translated, in their order."""

    @property
    def protects_placeholders(self) -> bool:
        """Whether placeholders in its texts are to stay as they are."""

    def write(self, translations: Sequence[str | None]) -> bytes:
        """Give the content of the translated document.

        Args:
            translations: of each text, as HTML; None: there is none, and the document keeps what it has there.
        """


def lines_of(content: bytes) -> list[str]:
    """Divide text into lines with their ends, whichever of the three they are.

    Raises:
        ValueError: it is not UTF-8.
    """
    return list(io.StringIO(decoded(content), newline=""))


def decoded(content: bytes) -> str:
    """Read text.

    Raises:
        ValueError: it is not UTF-8.
    """
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start})") from error
