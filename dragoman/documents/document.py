"""The common interface of documents of all formats."""

import io
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from dragoman.language import AUTO, pair

_PRIMARY: Final = re.compile(r"[A-Za-z]{2,3}(?![A-Za-z])")  # of en, en-US and en_US


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

    @property
    def languages(self) -> Sequence[tuple[str, str]]:
        """The pairs of source and target language that the document states; "": not stated."""

    @property
    def unwritten(self) -> Sequence[str]:
        """The places of the texts that `write` kept despite a translation, which the format cannot hold there."""

    def write(self, translations: Sequence[str | None]) -> bytes:
        """Give the content of the translated document.

        Args:
            translations: the translation of each text, as HTML; None: the document keeps its text.
        """


def check_languages(stated: Iterable[Sequence[str]], source: str, target: str) -> None:
    """Check that a document states no other languages than the requested ones; scripts and regions do not count.

    Args:
        stated: see `Document.languages`.
        source: language to translate from; "" or `AUTO`: unknown.
        target: language to translate into; "": unknown.

    Raises:
        ValueError: it states another language.
    """
    source = "" if source.lower() == AUTO else source
    for own_source, own_target in stated:
        if _differ(own_source, source) or _differ(own_target, target):
            raise ValueError(f"is for {pair(own_source, own_target)}, not for {pair(source, target)}")


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


def _differ(stated: str, requested: str) -> bool:
    """Tell whether two codes are of different languages."""
    primary = [found[0].lower() for code in (stated, requested) if (found := _PRIMARY.match(code))]
    return len(set(primary)) > 1
