"""Start tags of a page of HTML and their attributes, by the rules of the standard, without a library.

https://html.spec.whatwg.org/multipage/parsing.html
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

_MARKUP: Final = re.compile(r"<(?:(?P<comment>!--)|(?P<end>/)?(?P<name>[a-zA-Z][^\s/>]*)|[!?/])")
_ATTRIBUTE: Final = re.compile(
    r"""[\s/]*(?P<name>=?[^\s/>=]+|=)(?:\s*=\s*(?P<value>"[^"]*"|'[^']*'|[^\s>"'][^\s>]*|(?=>)))?"""
)
_TAG_END: Final = re.compile(r"[\s/]*>")
# Elements inside a line; all other elements are blocks.
INLINE: Final = frozenset(
    re.findall(
        r"\w+",
        """a abbr acronym b bdi bdo big cite code data del dfn em font i iframe img ins kbd mark math noembed q rp rt
        ruby s samp script small span strike strong style sub sup svg template time tt u var wbr""",
    )
)
# Elements whose content holds no tags.
_RAW: Final = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
# Elements without an end tag.
VOID: Final = frozenset(
    {
        *("area", "base", "br", "col", "embed", "hr", "img"),
        *("input", "link", "meta", "param", "source", "track", "wbr"),
    }
)


class Attribute(NamedTuple):
    """An attribute of a tag.

    Attributes:
        start: where the value begins in the source, with its quotation marks.
        stop: where the value ends.
        value: the value without quotation marks and character references.
    """

    start: int
    stop: int
    value: str


class StartTag(NamedTuple):
    """A start tag.

    Attributes:
        name: the tag's name in lower case.
        attributes: the attributes, by their names in lower case.
    """

    name: str
    attributes: Mapping[str, Attribute]

    def value(self, name: str) -> str:
        """Give the value of an attribute; "" if the tag does not have it."""
        return self.attributes[name].value if name in self.attributes else ""

    @property
    def is_kept(self) -> bool:
        """Whether the element is marked as not to be translated."""
        return self.value("translate").lower() == "no" or "notranslate" in self.value("class").split()


def translated_tags(source: str) -> Iterator[StartTag]:
    """Yield the start tags of a page, without elements that are not to be translated and their content."""
    tags = list(_tags(source))
    ends = ends_of_elements([(name, 1 if tag else -1) for tag, name in tags])
    done = 0
    for index, (tag, name) in enumerate(tags):
        if index < done or tag is None:
            continue
        if not tag.is_kept:
            yield tag
        elif name not in VOID:
            done = ends[index] + 1


def ends_of_elements(tags: Sequence[tuple[str, int]]) -> dict[int, int]:
    """Map each start tag to the last item of its element: its end tag, or else the item before the next block.

    Args:
        tags: the items of a page, each with its name in lower case: 1 is a start tag, -1 an end tag, 0 anything else.

    Returns:
        Indices in `tags`.
    """
    ends: dict[int, int] = {}
    open_tags: dict[str, list[int]] = {}
    for index, (name, nesting) in enumerate(tags):
        if nesting > 0:
            open_tags.setdefault(name, []).append(index)
        elif nesting < 0 and open_tags.get(name):
            ends[open_tags[name].pop()] = index
    block = len(tags)
    for index in range(len(tags) - 1, -1, -1):
        name, nesting = tags[index]
        if nesting > 0:
            ends.setdefault(index, block - 1)
        # In an svg or math element, a title may contain tags, unlike the title of a page.
        if name and name not in INLINE and name != "title":
            block = index
    return ends


def _tags(source: str) -> Iterator[tuple[StartTag | None, str]]:
    """Yield the tags of a page, each with its name; None stands for an end tag."""
    done = 0
    while found := _MARKUP.search(source, done):
        name = (found["name"] or "").lower()
        if found["comment"]:
            done = _behind(source, "-->", found.start() + len("<!"))
        elif not name or found["end"]:
            done = _behind(source, ">", found.end())
            if name:
                yield None, name
        else:
            attributes, done = _attributes(source, found.end())
            if done < 0:  # the page ends inside a tag
                return
            yield StartTag(name, attributes), name
            if name in _RAW:
                end = _RAW[name].search(source, done)
                done = end.start() if end else -1
        if done < 0:
            return


def _behind(source: str, what: str, start: int) -> int:
    """Find the end of the next occurrence of a text; -1 if there is none."""
    place = source.find(what, start)
    return place if place < 0 else place + len(what)


def _attributes(source: str, start: int) -> tuple[dict[str, Attribute], int]:
    """Read the attributes of a tag, and find its end; -1 if the tag has no end."""
    attributes: dict[str, Attribute] = {}
    while not (end := _TAG_END.match(source, start)):
        found = _ATTRIBUTE.match(source, start)
        if found is None:
            return attributes, -1
        start = found.end()
        if found["value"] is not None:
            value = found["value"]
            bare = value[1:-1] if value[:1] in ('"', "'") else value
            attributes.setdefault(found["name"].lower(), Attribute(*found.span("value"), html.unescape(bare)))
    return attributes, end.end()
