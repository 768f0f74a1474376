"""Paragraphs of Word and PowerPoint: runs with formats become spans of HTML, and then runs again.

Office Open XML, ECMA-376: WordprocessingML (w:p, w:r, w:t) and DrawingML (a:p, a:r, a:t) differ in names alone. The
most frequent format of a paragraph needs no span. Adjacent runs with the same format are joined, because Word splits
text invisibly.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Final, NamedTuple, cast

from lxml import etree

from dragoman.documents.inline import Kind, Token, standing
from dragoman.documents.safe_xml import XML_SPACE

_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
# Fields, and formulas: they stand for words of the sentence.
_STANDING: Final = frozenset(
    {f"{_W}fldSimple", f"{_A}fld", "{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath"}
)
_DEPTH: Final = 8  # nesting levels of fields
# Invisible parts of a format; without them more runs have equal formats.
_UNSEEN: Final = frozenset({f"{_W}lang", f"{_W}noProof"})
_PROPERTIES: Final = frozenset({f"{_W}smartTagPr", f"{_W}customXmlPr"})  # at the beginning of a holder
_UNSEEN_ATTRIBUTES: Final = ("lang", "altLang", "dirty", "err", "noProof")


class Names(NamedTuple):
    """The element names of an XML vocabulary.

    Attributes:
        paragraph: the paragraph.
        head: an element at the beginning of a paragraph.
        tail: an element at the end of a paragraph; "": none.
        run: text with a format.
        format: the format of a run.
        text: the text of a run.
        breaks: elements that end a sentence.
        holders: elements that hold runs, such as a link.
        dropped: elements that a changed text makes meaningless.
    """

    paragraph: str
    head: str
    tail: str
    run: str
    format: str
    text: str
    breaks: frozenset[str]
    holders: frozenset[str]
    dropped: frozenset[str]


WORD: Final = Names(
    f"{_W}p",
    f"{_W}pPr",
    "",
    f"{_W}r",
    f"{_W}rPr",
    f"{_W}t",
    frozenset({f"{_W}br", f"{_W}cr", f"{_W}tab", f"{_W}ptab"}),
    frozenset(f"{_W}{name}" for name in ("hyperlink", "ins", "moveTo", "smartTag", "customXml", "sdt", "dir", "bdo")),
    frozenset({f"{_W}proofErr", f"{_W}lastRenderedPageBreak", f"{_W}softHyphen"}),
)
DRAWING: Final = Names(
    f"{_A}p",
    f"{_A}pPr",
    f"{_A}endParaRPr",
    f"{_A}r",
    f"{_A}rPr",
    f"{_A}t",
    frozenset({f"{_A}br"}),
    frozenset(),
    frozenset(),
)


class _Format(NamedTuple):
    """A format other than the paragraph's most frequent one."""

    element: "etree._Element | None"


class _Moved(NamedTuple):
    """Elements that move together with the words beside them."""

    elements: "Sequence[etree._Element]"


class _Wrapped(NamedTuple):
    """A child of a run other than text; gets a run of its own."""

    child: "etree._Element"
    format: "etree._Element | None"


class _Field(NamedTuple):
    """The elements before and after the result of a field."""

    before: "Sequence[etree._Element]"
    behind: "Sequence[etree._Element]"


class _Holder(NamedTuple):
    """An element that holds runs, and the inner element that contains them."""

    outer: "etree._Element"
    inner: "etree._Element"


class RunParagraph:
    """A paragraph.

    Attributes:
        tokens: the tokens of its text.
    """

    def __init__(self, element: "etree._Element", names: Names) -> None:
        """Read a paragraph without changing it."""
        self._element, self._names = element, names
        self._base = _most_frequent(element, names)
        self._base_key = _key(self._base)
        self._tags: list[_Format | _Moved | _Wrapped | _Field | _Holder] = []
        self._opened: tuple[int, bytes] | None = None  # the open format: its tag and key
        self.tokens: list[Token] = []
        self._read([child for child in element if child.tag not in (names.head, names.tail)])
        self._close()
        self.tokens = standing(self.tokens)

    def rewrite(self, tokens: Sequence[Token]) -> None:
        """Put a translation into the paragraph."""
        names = self._names
        tail = [child for child in self._element if child.tag == names.tail]
        self._element[:] = [child for child in self._element if child.tag == names.head]
        holders, formats = [self._element], [self._base]
        for token in tokens:
            tag = None if token.kind is Kind.TEXT else self._tags[token.tag]
            if token.kind is Kind.END:
                holders.pop()
                formats.pop()
                if isinstance(tag, _Field):
                    holders[-1].extend(tag.behind)
            elif tag is None:
                text = etree.Element(names.text)
                text.text = token.text
                if names is WORD:  # in DrawingML, this element has no attributes
                    text.set(XML_SPACE, "preserve")
                holders[-1].append(self._run(text, formats[-1]))
            elif isinstance(tag, _Wrapped):
                holders[-1].append(self._run(tag.child, tag.format))
            elif isinstance(tag, _Moved):
                holders[-1].extend(tag.elements)
            else:
                holders.append(_begun(tag, holders[-1]))
                formats.append(tag.element if isinstance(tag, _Format) else formats[-1])
        self._element.extend(tail)

    def _run(self, child: "etree._Element", wanted: "etree._Element | None") -> "etree._Element":
        run = etree.Element(self._names.run)
        if wanted is not None:
            run.append(deepcopy(wanted))
        run.append(child)
        return run

    def _read(self, children: "Sequence[etree._Element]") -> None:
        """Read sibling elements."""
        names, index = self._names, 0
        children = list(_apart(children, names))
        marks = [_field_marks(child) for child in children]
        while index < len(children):
            child = children[index]
            index += 1
            if end := _end_of_field(marks, index - 1):
                self._read_field(children[index - 1 : end])
                index = end
            elif child.tag == names.run:
                self._read_run(child)
            elif child.tag in names.holders or _is_link(child.get(f"{_W}instr") or ""):
                inner = next((each for each in child if each.tag == f"{_W}sdtContent"), child)
                self._within(_Holder(child, inner), [each for each in inner if each.tag not in _PROPERTIES])
            elif child.tag in names.breaks:
                self._add(Kind.BREAK, _Moved([child]))
            elif child.tag not in names.dropped:
                self._add(Kind.KEPT if child.tag in _STANDING else Kind.ALONE, _Moved([child]))

    def _read_run(self, run: "etree._Element") -> None:
        names = self._names
        form = run.find(names.format)
        for child in run:
            if child.tag == names.text:
                self._write(child.text or "", form)
            elif child.tag == f"{_W}noBreakHyphen":
                self._write("-", form)
            elif child.tag in names.breaks:
                self._add(Kind.BREAK, _Wrapped(child, form))
            elif child.tag != names.format and child.tag not in names.dropped:
                self._add(Kind.ALONE, _Wrapped(child, form))

    def _read_field(self, runs: "Sequence[etree._Element]") -> None:
        """Read a field: the text of a link is translated; Word computes the result of other fields."""
        result = next((index for index, run in enumerate(runs) if "separate" in _field_marks(run)), None)
        code = "".join(text.text or "" for run in runs for text in run.iter(f"{_W}instrText"))
        if result is None or not _is_link(code):
            self._add(Kind.ALONE if result is None else Kind.KEPT, _Moved(runs))
        else:
            self._within(_Field(runs[: result + 1], runs[-1:]), runs[result + 1 : -1])

    def _within(self, tag: "_Field | _Holder", children: "Sequence[etree._Element]") -> None:
        number = self._add(Kind.BEGIN, tag)
        self._read(children)
        self._close()
        self.tokens.append(Token(Kind.END, tag=number))

    def _write(self, text: str, form: "etree._Element | None") -> None:
        """Add text, inside an element of its format if that is not the most frequent one."""
        wanted = _key(form)
        if not text:
            return
        if self._opened is not None and self._opened[1] != wanted:
            self._close()
        if self._opened is None and wanted != self._base_key:
            self._opened = self._add(Kind.BEGIN, _Format(form)), wanted
        self.tokens.append(Token(Kind.TEXT, text))

    def _add(self, kind: Kind, tag: "_Format | _Moved | _Wrapped | _Field | _Holder") -> int:
        """Add a tag and return its number."""
        self._close()
        self._tags.append(tag)
        self.tokens.append(Token(kind, tag=len(self._tags) - 1))
        return len(self._tags) - 1

    def _close(self) -> None:
        """Close the element of the open format."""
        if self._opened is not None:
            self.tokens.append(Token(Kind.END, tag=self._opened[0]))
        self._opened = None


def _begun(tag: "_Format | _Field | _Holder", holder: "etree._Element") -> "etree._Element":
    """Begin an element; returns the element for its content."""
    if isinstance(tag, _Holder):
        tag.inner[:] = [child for child in tag.inner if child.tag in _PROPERTIES]
        holder.append(tag.outer)
        return tag.inner
    if isinstance(tag, _Field):
        holder.extend(tag.before)
    return holder


def _most_frequent(paragraph: "etree._Element", names: Names) -> "etree._Element | None":
    """Find the most frequent format of the text."""
    sizes: Counter[bytes] = Counter()
    formats: dict[bytes, etree._Element | None] = {}
    for run in paragraph.iter(names.run):
        form = run.find(names.format)
        sizes[_key(form)] += sum(len(text.text or "") for text in run.findall(names.text))
        formats.setdefault(_key(form), form)
    return formats[sizes.most_common(1)[0][0]] if sizes else None


def _key(form: "etree._Element | None") -> bytes:
    """Serialize the visible parts of a format, so that equal formats compare equal."""
    if form is None:
        return b""
    seen = deepcopy(form)
    for child in [child for child in seen if child.tag in _UNSEEN]:
        seen.remove(child)
    for name in _UNSEEN_ATTRIBUTES:
        seen.attrib.pop(name, "")
    seen.tail = None
    return etree.tostring(seen, method="c14n") if len(seen) or seen.attrib else b""


def _apart(children: "Iterable[etree._Element]", names: Names) -> "Iterator[etree._Element]":
    """Yield sibling elements; a run with marks of a field beside other content becomes a run for each of its parts."""
    for child in children:
        form = child.find(names.format)
        # A copy of a text box would not get the translations of its paragraphs.
        is_mixed = _field_marks(child) and child.find(f".//{names.paragraph}") is None
        parts = [part for part in child if part is not form] if is_mixed else []
        for part in parts if len(parts) > 1 else ():
            run = etree.Element(names.run, nsmap=cast("Mapping[str, str]", child.nsmap))
            run.extend(deepcopy(each) for each in (form, part) if each is not None)
            yield run
        if len(parts) <= 1:
            yield child


def _is_link(code: str) -> bool:
    """Tell whether the code of a field makes it a link."""
    return code.split()[:1] == ["HYPERLINK"]


def _field_marks(run: "etree._Element") -> list[str]:
    return [str(mark.get(f"{_W}fldCharType")) for mark in run.findall(f"{_W}fldChar")]


def _end_of_field(marks: Sequence[Sequence[str]], start: int) -> int | None:
    """Find the end of the field that begins at a child; None if no field begins there, or it ends in another paragraph.

    Args:
        marks: the field marks of each child.
        start: the index of the child.
    """
    if "begin" not in marks[start]:
        return None
    depth = 0
    for index in range(start, len(marks)):
        depth += marks[index].count("begin") - marks[index].count("end")
        if depth <= 0:
            return index + 1
        if depth > _DEPTH:
            break
    return None
