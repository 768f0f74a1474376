"""Office documents: Word (.docx), PowerPoint (.pptx) and OpenDocument text (.odt); each paragraph is a text."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from lxml import etree

from dragoman.documents import safe_xml
from dragoman.documents.archive import Archive
from dragoman.documents.document import DocumentText, StatedLanguages
from dragoman.documents.inline import Kind, Token, from_html, has_words, to_html
from dragoman.documents.odf import odf_paragraphs
from dragoman.documents.runs import DRAWING, WORD, RunParagraph

_STRICT: Final = "purl.oclc.org/ooxml"  # in the namespaces of Strict Open XML, which few programs write
_MANIFEST: Final = "META-INF/manifest.xml"  # of OpenDocument


class _Paragraph(Protocol):
    """A paragraph of any format."""

    @property
    def tokens(self) -> Sequence[Token]:
        """The tokens of its text."""

    def rewrite(self, tokens: Sequence[Token]) -> None:
        """Put a translation into the paragraph."""


class _Format(NamedTuple):
    """The differences between the formats.

    Attributes:
        name: the name of the format.
        parts: the pattern of the names of the members with text.
        main: the pattern of the name of a member that each file of the format has.
        root: the pattern of the namespaces of the first elements of members with text.
        paragraphs: yields the paragraphs of a part; a paragraph comes before those inside it.
    """

    name: str
    parts: re.Pattern[str]
    main: re.Pattern[str]
    root: re.Pattern[str]
    paragraphs: "Callable[[etree._Element], Iterator[_Paragraph]]"


_WORD: Final = _Format(
    "Word document (.docx)",
    re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml"),
    re.compile(r"word/document\d*\.xml"),
    re.compile(r"http://schemas\.openxmlformats\.org/wordprocessingml/2006/main"),
    lambda root: (RunParagraph(paragraph, WORD) for paragraph in root.iter(WORD.paragraph)),
)
_POWERPOINT: Final = _Format(
    "PowerPoint presentation (.pptx)",
    # A diagram has its texts twice: as data, and in the picture drawn from them.
    re.compile(r"ppt/(?:slides/slide|notesSlides/notesSlide|diagrams/(?:data|drawing))\d+\.xml"),
    re.compile(r"ppt/.*"),
    re.compile(r"http://schemas\.(?:openxmlformats\.org|microsoft\.com)/.*"),
    lambda root: (RunParagraph(paragraph, DRAWING) for paragraph in root.iter(DRAWING.paragraph)),
)
_ODT: Final = _Format(
    "OpenDocument text (.odt)",
    re.compile(r"content\.xml|styles\.xml"),
    re.compile(r"content\.xml"),
    re.compile("urn:oasis:names:tc:opendocument:.*"),
    odf_paragraphs,
)


class OfficeDocument:
    """A document that is an archive of XML.

    Attributes:
        texts: one for each paragraph with words.
        protects_placeholders: whether the text has fields or formulas, which are kept as placeholders are.
        languages: none.
        unwritten: none.
    """

    languages: Sequence[StatedLanguages] = ()
    unwritten: Sequence[str] = ()

    def __init__(self, content: bytes, form: _Format) -> None:
        """Read the parts with text.

        Args:
            content: the content of the file.
            form: the format of the file.

        Raises:
            ValueError: the content is no archive, or not one of this format.
        """
        self._archive = Archive(content)
        if _is_encrypted(self._archive):
            raise ValueError("is protected by a password")
        names = [name for name in self._archive.names if form.parts.fullmatch(name)]
        if not any(map(form.main.fullmatch, names)):
            raise ValueError(f"is no {form.name}: it has no part with the text")
        self._tags_left = safe_xml.MAX_TAGS
        self._parts: dict[str, etree._ElementTree] = {}
        self._paragraphs: list[_Paragraph] = []
        self.texts: list[DocumentText] = []
        for name in names:
            self._parts[name] = self._parsed(name, form)
            for number, paragraph in enumerate(form.paragraphs(self._parts[name].getroot()), start=1):
                if has_words(paragraph.tokens):
                    self._paragraphs.append(paragraph)
                    self.texts.append(DocumentText(to_html(paragraph.tokens), f"{name}, paragraph {number}"))
        self.protects_placeholders = any(
            token.kind is Kind.KEPT for paragraph in self._paragraphs for token in paragraph.tokens
        )

    def write(self, translations: Sequence[str | None]) -> bytes:
        """Give the content of the file; see `Document`."""
        for paragraph, translation in zip(self._paragraphs, translations, strict=True):
            if translation is not None:
                paragraph.rewrite(from_html(safe_xml.allowed(translation), paragraph.tokens))
        return self._archive.write({name: safe_xml.serialized(tree) for name, tree in self._parts.items()})

    def _parsed(self, name: str, form: _Format) -> "etree._ElementTree":
        content = self._archive.read(name)
        try:
            tree = safe_xml.parse(content, self._tags_left)
            root = etree.QName(tree.getroot())
            if not form.root.fullmatch(root.namespace or ""):
                strict = "; save it again, not as Strict Open XML" if _STRICT in (root.namespace or "") else ""
                raise ValueError(f"is no part of a {form.name}: its first element is {root.text!r:.120}{strict}")
            return tree
        except ValueError as error:
            raise ValueError(f"its member {name!r} {error}") from error
        finally:
            self._tags_left -= content.count(b"<")


def _is_encrypted(archive: Archive) -> bool:
    """Tell whether a file is an OpenDocument with encrypted members."""
    return _MANIFEST in archive.names and b"encryption-data" in archive.read(_MANIFEST)


read_docx = partial(OfficeDocument, form=_WORD)
read_pptx = partial(OfficeDocument, form=_POWERPOINT)
read_odt = partial(OfficeDocument, form=_ODT)
