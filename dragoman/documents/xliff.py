"""XLIFF 1.2 and 2: an untranslated unit gets a translation that contains its inline elements.

https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html, https://docs.oasis-open.org/xliff/xliff-core/v2.1/
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Final, NamedTuple

from lxml import etree

from dragoman.documents import safe_xml
from dragoman.documents.document import DocumentText, StatedLanguages
from dragoman.documents.inline import from_html, has_words, to_html
from dragoman.documents.mixed import MixedText, Vocabulary
from dragoman.documents.mnemonics import Label

_STATE: Final = "translated"
_OF_QT: Final = "urn:trolltech:names:ts:document:1.0"  # the namespace that Qt's lconvert declares
_UNTRANSLATED: Final = ("new", "needs-translation", "initial")


class _Version(NamedTuple):
    """The differences between the versions.

    Attributes:
        units: the element names of units with a source and a target.
        state_of_unit: whether the unit has the attribute state; else the target has it.
        says: the element names of holders of units with the languages ...
        source: ... the attribute with the source language ...
        target: ... and the attribute with the target language.
    """

    units: str
    state_of_unit: bool
    says: str
    source: str
    target: str


_NAMESPACE: Final = "urn:oasis:names:tc:xliff:document:"
_TWO: Final = _Version("segment", state_of_unit=True, says="xliff", source="srcLang", target="trgLang")
_VERSIONS: Final = {
    f"{_NAMESPACE}1.2": _Version(
        "trans-unit", state_of_unit=False, says="file", source="source-language", target="target-language"
    ),
    f"{_NAMESPACE}2.0": _TWO,
    f"{_NAMESPACE}2.2": _TWO,
}


def _holds(element: "etree._Element") -> bool:
    kept = element.get("mtype") == "protected" or element.get("translate") == "no"
    return etree.QName(element).localname in ("g", "pc", "mrk") and not kept


_VOCABULARY: Final = Vocabulary(
    holds=_holds,
    breaks=lambda element: element.get("ctype") == "lb" or element.get("subType") == "xlf:lb",
    stands=lambda element: (
        etree.QName(element).localname in ("x", "ph", "mrk")
        and element.get("ctype") is None  # that of a picture or a format
        and element.get("type") not in ("fmt", "quote", "link", "image")
    ),
    html=True,
)


class _Unit(NamedTuple):
    """A unit that has no translation.

    Attributes:
        element: the element of the unit.
        source: the source element.
        target: a copy of the source that becomes the target.
        text: the text of the target.
        label: the text to translate, without its mnemonic.
    """

    element: "etree._Element"
    source: "etree._Element"
    target: "etree._Element"
    text: MixedText
    label: Label


class XliffDocument:
    """A file of units.

    Attributes:
        texts: one for each unit without a translation.
        protects_placeholders: True.
        languages: the languages of the file; version 1.2 may have several pairs.
        unwritten: none.
    """

    protects_placeholders = True
    unwritten: Sequence[str] = ()

    def __init__(self, content: bytes) -> None:
        """Find the untranslated units.

        Args:
            content: the content of the file.

        Raises:
            ValueError: the content is no XLIFF of a supported version.
        """
        self._tree = safe_xml.parse(content)
        root = etree.QName(self._tree.getroot())
        version = _VERSIONS.get(root.namespace or "")
        if version is None or root.localname != "xliff":
            bare = ", without xmlns" if self._tree.getroot().tag == "xliff" else ""
            raise ValueError(f"is no XLIFF 1.2 or 2: its first element is {self._tree.getroot().tag!r:.120}{bare}")
        self._version, self._space = version, f"{{{root.namespace}}}"
        says = self._tree.iter(f"{self._space}{version.says}")
        pairs = sorted({(each.get(version.source, ""), each.get(version.target, "")) for each in says})
        self.languages = [StatedLanguages(*each, f"{version.source} and {version.target}") for each in pairs]
        self._units = [unit for unit in self._find() if has_words(unit.label.tokens)]
        self.texts = [
            DocumentText(to_html(unit.label.tokens), f"line {unit.element.sourceline}") for unit in self._units
        ]

    def write(self, translations: Sequence[str | None]) -> bytes:
        """Give the content of the file; see `Document`."""
        for unit, translation in zip(self._units, translations, strict=True):
            if translation is not None:
                tokens = from_html(safe_xml.allowed(translation), unit.label.tokens)
                unit.text.rewrite(unit.label.written(tokens))
                self._put(unit)
        return safe_xml.serialized(self._tree)

    def _find(self) -> Iterator[_Unit]:
        root = self._tree.getroot()
        marks = "&" if _OF_QT in root.nsmap.values() else ""
        for element in root.iter(f"{self._space}{self._version.units}"):
            source, target = element.find(f"{self._space}source"), element.find(f"{self._space}target")
            if source is None or not _is_translated(element) or self._is_done(element, target):
                continue
            new = deepcopy(source)
            new.tag, new.tail = f"{self._space}target", None
            new.attrib.clear()
            text = MixedText(new, _VOCABULARY, keeps_lines=_keeps_space(source))
            yield _Unit(element, source, new, text, Label.read(text.tokens, marks))

    def _is_done(self, element: "etree._Element", target: "etree._Element | None") -> bool:
        """Tell whether a unit has a translation."""
        if element.get("approved") == "yes":
            return True
        if target is None or not (len(target) or (target.text or "").strip()):
            return False
        return (element if self._version.state_of_unit else target).get("state") not in _UNTRANSLATED

    def _put(self, unit: _Unit) -> None:
        """Put the target after its source and the divided source, in place of an earlier target."""
        old = unit.element.find(f"{self._space}target")
        if old is None:
            divided = unit.element.find(f"{self._space}seg-source")
            before = unit.source if divided is None else divided
            unit.target.tail = before.tail
            before.addnext(unit.target)
        else:
            unit.target.tail = old.tail
            unit.target.attrib.update(old.attrib)
            unit.element.replace(old, unit.target)
        (unit.element if self._version.state_of_unit else unit.target).set("state", _STATE)


def say_language(content: bytes, source: str, target: str) -> bytes:
    """Set the language of the targets of a translated file, where the file states none: XLIFF 2 requires it.

    Args:
        content: the content of the file.
        source: language that the file was translated from.
        target: language that the file was translated into.
    """
    tree = safe_xml.parse(content)
    space = etree.QName(tree.getroot()).namespace or ""
    version = _VERSIONS[space]
    unsaid = [each for each in tree.iter(f"{{{space}}}{version.says}") if not each.get(version.target)]
    for each in unsaid:
        each.set(version.target, target)
    return safe_xml.serialized(tree) if unsaid else content


def _is_translated(element: "etree._Element") -> bool:
    """Tell whether a unit is to be translated: the nearest element with the attribute translate decides."""
    said = next((each.get("translate") for each in (element, *element.iterancestors()) if each.get("translate")), "yes")
    return said != "no"


def _keeps_space(element: "etree._Element") -> bool:
    said = (each.get(safe_xml.XML_SPACE) for each in (element, *element.iterancestors()))
    return next((value for value in said if value), "default") == "preserve"
