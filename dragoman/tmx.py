"""Term pairs from TMX (Translation Memory eXchange 1.4, https://www.ttt.org/oscarstandards/tmx/).

The file is read with expat, event by event: entities are refused, no other file is read.
"""

from typing import Any, Final
from xml.parsers import expat

_DEPTH: Final = 32  # nesting levels; TMX has six


def parse(content: bytes, source: str = "", target: str = "") -> tuple[tuple[str, str], list[tuple[int, str, str]]]:
    """Read the units that have both languages.

    Args:
        content: the content of a file.
        source: the language of the source terms; "": that of the header, or of the first unit.
        target: the language of the target terms; "": the other language of the first unit with two languages.

    Returns:
        The languages, and the entries: number of the unit from 1, source term, target term; one for each term pair.

    Raises:
        ValueError: the content is no TMX.
    """
    reader = _Reader()
    reader.read(content)
    source = source or reader.source
    for languages in ([language for language, _ in unit] for unit in reader.units if unit):
        source = source or languages[0]
        target = target or next((language for language in languages if not _same(language, source)), "")
    units = [
        (number, before, behind)
        for number, unit in enumerate(reader.units, start=1)
        for language, before in unit
        if _same(language, source)
        for other, behind in unit
        if _same(other, target)
    ]
    return (source, target), units


def _same(language: str, wanted: str) -> bool:
    """Tell whether a variant's language matches: EN-US matches en, too."""
    language, wanted = language.lower(), wanted.lower()
    return bool(wanted) and (language == wanted or language.startswith(wanted + "-"))


class _Reader:
    """Collects the units of a file.

    Attributes:
        units: for each unit its variants: language and text.
        source: the source language of the header; "": all languages, or none named.
    """

    def __init__(self) -> None:
        self.units: list[list[tuple[str, str]]] = []
        self.source = ""
        self._path: list[str] = []
        self._language = ""
        self._text: list[str] | None = None

    def read(self, content: bytes) -> None:
        """Read a file; raises ValueError if the content is no TMX."""
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._write
        # Nested entities could expand without end.
        parser.EntityDeclHandler = self._refuse_entity
        try:
            parser.Parse(content, True)
        except expat.ExpatError as error:
            raise ValueError(f"is no XML: {error}") from error
        except LookupError as error:
            raise ValueError(f"cannot be decoded: {error}") from error

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if not self._path and name != "tmx":
            raise ValueError(f"is no TMX: its first element is {name[:32]!r}")
        if len(self._path) == _DEPTH:
            raise ValueError("is no TMX: its elements are nested too deep")
        self._path.append(name)
        if name == "header":
            language = attributes.get("srclang", "")
            self.source = "" if language == "*all*" else language
        elif name == "tu":
            self.units.append([])
        elif name == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang", "")
        elif name == "seg":
            self._text = []

    def _end(self, name: str) -> None:
        self._path.pop()
        if name == "seg" and self._text is not None:
            if not self.units:
                raise ValueError("is no TMX: a seg stands outside of all units")
            self.units[-1].append((self._language, " ".join("".join(self._text).split())))
            self._text = None

    def _write(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _refuse_entity(self, *_: Any) -> None:
        raise ValueError("must declare no entities")
