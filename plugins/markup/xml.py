"""XML: extracts the texts between tags. The result is put together as for HTML, see `html`.

Unlike HTML, no list of names says which tags end a sentence: all tags stand inside one, unless the caller says
otherwise. A pattern finds the tags, since no XML reader gives the source of each tag. No XML is an error: other
characters are text. Comments, CDATA sections and the like are kept.
"""

import re
from collections.abc import Iterator, Sequence
from html import unescape
from html.entities import html5
from typing import Final

from plugins.markup.html import BLANKS, KEPT_CHARACTERS, Block, OpenBlock
from service.options import XmlTags

# Each alternative reads a character once, since texts may be hostile: an unclosed construct extends to the text's end.
_TOKEN: Final = re.compile(
    r"""<!--.*?(?:-->|\Z) | <!\[CDATA\[.*?(?:\]\]>|\Z) | <\?.*?(?:\?>|\Z)
    | <!DOCTYPE[^<>\[]*+(?:\[[^\]]*+\]?)?[^<>]*+>?
    | <(?P<closes>/?)(?P<name>[^\W\d][\w.:-]*+)(?:\s(?:[^<>"'/]|/(?!>)|"[^"<]*+"|'[^'<]*+')*+)?(?P<empty>/?)>
    | &(?P<reference>\#[0-9]{1,7};|\#x[0-9a-fA-F]{1,6};|[a-zA-Z]\w{1,31};)""",
    re.DOTALL | re.VERBOSE,
)
_HARD_BLANK: Final = "\xa0"  # XML has no name for it


def parse(xml: str, tags: XmlTags) -> Iterator[str | Block]:
    """Yield the kept source and the blocks of text, in the order of the source."""
    tokens = list(_TOKEN.finditer(xml))
    ends = _ends(tokens, tags)
    block = OpenBlock(_HARD_BLANK)
    index = done = 0
    while index < len(tokens):
        token, last = tokens[index], ends.get(index, index)
        text = xml[done : token.start()]
        block.write(text.translate(BLANKS), text)
        done = tokens[last].end()
        source, name = xml[token.start() : done], token["name"] or ""
        if character := _character(token["reference"] or ""):
            block.write(character, source)
        elif name in tags.splitting:
            yield block.close()
            yield source
            block = OpenBlock(_HARD_BLANK)
        elif last > index:
            content = unescape(_TOKEN.sub("", xml[token.end() : tokens[last].start()])).translate(BLANKS)
            block.mark(source, content=content.strip() if len(content) <= KEPT_CHARACTERS else "")
        else:
            block.mark(source, closes=bool(token["closes"]), name="" if token["empty"] else name)
        index = last + 1
    block.write(xml[done:].translate(BLANKS), xml[done:])
    yield block.close()


def _character(reference: str) -> str:
    """Resolve a character reference; "" if it is unknown, or is no character."""
    return unescape(f"&{reference}") if reference[:1] == "#" else html5.get(reference, "")


def _ends(tokens: Sequence[re.Match[str]], tags: XmlTags) -> dict[int, int]:
    """Find the ends of kept elements, by the index of each start tag; elements without an end are left out."""
    ends: dict[int, int] = {}
    begun: dict[str, list[int]] = {name: [] for name in tags.kept}
    for index, token in enumerate(tokens):
        indices = begun.get(token["name"] or "")
        if indices is None or token["empty"]:
            continue
        if not token["closes"]:
            indices.append(index)
        elif indices:
            ends[indices.pop()] = index
    return ends
