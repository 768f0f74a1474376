"""The common interface of documents of all formats."""

import io
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from dragoman.language import AUTO, pair

_PRIMARY: Final = re.compile(r"([A-Za-z]{2})(?:[-_.@]|\Z)")  # of en, en-US and en_US
# Codes of the same language, and two that stand for none.
_SAME: Final = {"iw": "he", "in": "id", "nb": "no", "nn": "no", "ll": "", "xx": ""}
_TEMPLATE: Final = ".pot"  # of PO files: what its header states holds for no translation


class DocumentText(NamedTuple):
    """A text of a document.

    Attributes:
        html: the text as HTML, for the mime type text/html.
        place: the position of the text, for people, such as "cue 3".
    """

    html: str
    place: str


class StatedLanguages(NamedTuple):
    """A pair of languages that a document states.

    Attributes:
        source: its source language; "": not stated.
        target: its target language; "": not stated.
        where: where the document states them, for people.
    """

    source: str
    target: str
    where: str


class Document(Protocol):
    """A document with texts to translate."""

    @property
    def texts(self) -> Sequence[DocumentText]:
        """The texts to translate, in their order."""

    @property
    def protects_placeholders(self) -> bool:
        """Whether placeholders in the texts must stay unchanged."""

    @property
    def languages(self) -> Sequence[StatedLanguages]:
        """The languages that the document states."""

    @property
    def unwritten(self) -> Sequence[str]:
        """The places of the texts that `write` kept despite a translation, which the format cannot hold there."""

    def write(self, translations: Sequence[str | None]) -> bytes:
        """Give the content of the translated document.

        Args:
            translations: the translation of each text, as HTML; None: the document keeps its text.
        """


def check_languages(name: str, stated: Iterable[Sequence[str]], source: str, target: str) -> None:
    """Check that a document states no other languages than the requested ones.

    Scripts and regions do not count, nor codes without two letters. A document whose stated target language is the
    requested source language is an untranslated copy.

    Args:
        name: the name of the document's file.
        stated: the parts of each of `Document.languages`.
        source: language to translate from; "" or `AUTO`: unknown.
        target: language to translate into; "": unknown.

    Raises:
        ValueError: it states another language.
    """
    source = "" if source.lower() == AUTO else source
    for own_source, own_target, where in () if name.lower().endswith(_TEMPLATE) else stated:
        is_other = _differ(own_target, target) and _primary(own_target) != _primary(source)
        if is_other or _differ(own_source, source):
            own = pair(own_source, own_target) if own_source else own_target
            asked = pair(source, target) if own_source else target
            raise ValueError(f"says that it is for {own} ({where}), not for {asked}")


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
    """Tell whether two codes are of different languages; False if one is unknown."""
    primary = [_primary(stated), _primary(requested)]
    return all(primary) and primary[0] != primary[1]


def _primary(code: str) -> str:
    """Give the language of a code; "": unknown."""
    found = _PRIMARY.match(code)
    return _SAME.get(found[1].lower(), found[1].lower()) if found else ""
