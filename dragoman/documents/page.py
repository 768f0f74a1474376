"""An HTML page: the whole page is one text, and each attribute that people read is another."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

from dragoman.documents.document import DocumentText, StatedLanguages, decoded
from dragoman.documents.html_tags import Attribute, StartTag, translated_tags
from dragoman.documents.inline import has_letter

_READ: Final = (
    *("alt", "title", "placeholder"),
    *("aria-label", "aria-description", "aria-roledescription", "aria-valuetext"),
)
_NOT_READ: Final = ("link", "style")  # the titles of these elements are not shown
_LABELLED: Final = ("optgroup", "option", "track")
_BUTTONS: Final = ("button", "reset", "submit")
_META: Final = (
    *("description", "og:title", "og:description", "og:image:alt"),
    *("twitter:title", "twitter:description", "twitter:image:alt"),
)
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([^\s\"';]+)", re.IGNORECASE)
_XML_CHARSET: Final = re.compile(r"<\?xml\s[^>]*\bencoding\s*=\s*[\"']([^\"'>]+)", re.IGNORECASE)
_UTF8: Final = ("utf-8", "utf8")
_LANGUAGES: Final = ("lang", "xml:lang")
_KEY_LENGTH: Final = 16
_LONG: Final = 1_000  # characters of an attribute that the server does not get: an inlined picture has many


class HtmlDocument:
    """A page.

    Attributes:
        texts: the whole page, if it has words, and then the attributes.
        protects_placeholders: False.
        languages: none.
        unwritten: none.
    """

    protects_placeholders = False
    languages: Sequence[StatedLanguages] = ()
    unwritten: Sequence[str] = ()

    def __init__(self, content: bytes) -> None:
        """Read a page; raises ValueError if it is not UTF-8."""
        self._source = decoded(content)
        # Keys with numbers replace the attributes, because their tags may move. No page holds its own hash.
        self._key = sha256(content).hexdigest()[:_KEY_LENGTH]
        tags = list(translated_tags(self._source))
        # A browser may read the page in another charset, which has the same ASCII.
        self._is_ascii = self._source.isascii() and _charset(self._source, tags).strip().lower() not in _UTF8
        self._read_at = frozenset(attribute.start for tag in tags for attribute in _read(tag))
        self._attributes = sorted(
            attribute
            for tag in tags
            for attribute in tag.attributes.values()
            if attribute.start in self._read_at or attribute.stop - attribute.start > _LONG
        )
        self.texts: list[DocumentText] = []
        if has_letter(self._source):
            self.texts = [DocumentText("".join(self._keyed()), "the page"), *self._texts()]

    def write(self, translations: Sequence[str | None]) -> bytes:
        """Give the content of the file; see `Document`."""
        if not translations:
            return self._source.encode()
        page, *read = translations
        values = dict(zip(sorted(self._read_at), read, strict=True))

        def written(found: re.Match[str]) -> str:
            attribute = self._attributes[int(found[1])]
            value = values.get(attribute.start)
            if value is None:
                return self._source[attribute.start : attribute.stop]
            return '"' + html.escape(html.unescape(value), quote=False).replace('"', "&quot;") + '"'

        keyed = "".join(self._keyed()) if page is None else page
        translated = re.sub(rf'"{self._key}-(\d+)"', written, keyed)
        return translated.encode("ascii", "xmlcharrefreplace") if self._is_ascii else translated.encode()

    def _keyed(self) -> Iterator[str]:
        """Yield the page, in pieces, with keys in place of attributes."""
        done = 0
        for number, attribute in enumerate(self._attributes):
            yield self._source[done : attribute.start]
            yield f'"{self._key}-{number}"'
            done = attribute.stop
        yield self._source[done:]

    def _texts(self) -> Iterator[DocumentText]:
        line, done = 1, 0
        for attribute in self._attributes:
            line += self._source.count("\n", done, attribute.start)
            done = attribute.start
            if done in self._read_at:
                yield DocumentText(html.escape(attribute.value, quote=False), f"attribute in line {line}")


def say_language(content: bytes, source: str, target: str) -> bytes:
    """Set the language of a translated page, if the page stated the source language.

    Args:
        content: the content of the page.
        source: language that the page was translated from; "": unknown.
        target: language that the page was translated into.
    """
    page = decoded(content)
    root = next((tag for tag in translated_tags(page) if tag.name == "html"), None)
    said = [root.attributes[name] for name in _LANGUAGES if name in root.attributes] if root else []
    primary = _language(target)
    code = primary + target[len(primary) :]
    for each in sorted(said, reverse=True):  # from the end, so that the places of the others stay
        if not source or _language(each.value) == _language(source):
            page = f'{page[: each.start]}"{code}"{page[each.stop :]}'
    return page.encode()


def _language(code: str) -> str:
    """Give the language of a code, without script and region."""
    return code.partition("-")[0].lower()


def _read(tag: StartTag) -> Iterator[Attribute]:
    """Yield the attributes of a tag that people read and that have words."""
    names: Sequence[str] = () if tag.name in _NOT_READ else _READ
    if tag.name in _LABELLED:
        names = (*names, "label")
    elif tag.name == "input" and tag.value("type").lower() in _BUTTONS:
        names = (*names, "value")
    elif tag.name == "meta" and (tag.value("name") or tag.value("property")).lower() in _META:
        names = ("content",)
    for name in names:
        if has_letter(tag.value(name)):
            yield tag.attributes[name]


def _charset(page: str, tags: Iterable[StartTag]) -> str:
    """Give the first charset that a page says; "": none."""
    declared = _XML_CHARSET.match(page)
    said = (_charset_of(tag) for tag in tags if tag.name == "meta")
    return declared[1] if declared else next(filter(None, said), "")


def _charset_of(meta: StartTag) -> str:
    is_type = meta.value("http-equiv").strip().lower() == "content-type"
    found = _CHARSET.search(meta.value("content")) if is_type else None
    return meta.value("charset") or (found[1] if found else "")
