"""Positions of Markdown tags in the source of a paragraph: emphasis, links, pictures, code, HTML.

markdown-it-py finds the tags by the rules of CommonMark, https://spec.commonmark.org, with the tables and the
strikethrough of GitHub. Its tokens have no positions. So its rules are wrapped here: each token gets the position of
the rule that made it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

from markdown_it import MarkdownIt
from markdown_it import rules_inline as rules
from markdown_it.rules_block import StateBlock, reference
from markdown_it.token import Token as MarkdownToken

from dragoman.documents.inline import Kind, Tag, has_letter
from dragoman.documents.markdown_containers import enable_containers

_Rule = Callable[[rules.StateInline, bool], bool]
_Placer = Callable[[rules.StateInline, Sequence[MarkdownToken], int], None]

_PICTURE: Final = "img"
_PLACE: Final = "place"
_WRITTEN: Final = "written"
_HTML: Final = re.compile(r"<(?P<end>/)?(?P<name>[a-z][\w-]*)", re.IGNORECASE)
_HTML_CODE: Final = re.compile(r"<(code|kbd|samp|tt|var)(?:\s[^<>]*)?>[^<>]*</\1>", re.IGNORECASE)
_FOOTNOTE: Final = re.compile(r"\[\^[^\]\s]+\]:")  # at the beginning of a line: its definition
# Formulas of GitHub, between `$$`, `$` or "$`"; `$5 and $10` are prices, and so are `$5 or 6$`.
_PRICE: Final = r"\d[^\s$\\^_=+{<]*\s[^$\\^_=+{<]*\$"
_FORMULA: Final = re.compile(
    r"(?<!\$)\$\$(?!\$)[^$]+\$\$(?!\$)"
    rf"|(?<![\w$])\$(?!\s|{_PRICE})(?:`[^`$]+`|(?:\\[^`]|(?!\]\()[^$\\`])+)(?<!\s)\$(?![\w$])"
)
_KEPT: Final = {"html_code": _HTML_CODE, "formula": _FORMULA}  # HTML elements with code, and formulas
# Plain text for CommonMark: the first line of a GitHub alert, the box of a task, marks of footnotes, attributes of a
# heading, and addresses, which become links.
_UNMARKED: Final = re.compile(
    r"(?P<head>\A\[![A-Za-z]+\][ \t]*\n)|\A\[[ xX]\](?=\s)|\[\^[^\]\s]+\]:?|\{[#.:][^{}\n]*\}"
    r"|(?P<kept>https?://[^\s<>]*[\w/])"
)


def make_parser() -> MarkdownIt:
    """Make a parser whose inline tokens have positions."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    enable_containers(parser)
    parser.block.ruler.at("reference", _link_definition)
    parser.block.ruler.before("reference", "footnote", _ends_at_footnote, {"alt": ["paragraph"]})
    for name, (rule, place) in _RULES.items():
        parser.inline.ruler.at(name, _placing(rule, place))
    for name, pattern in _KEPT.items():
        parser.inline.ruler.before("escape", name, _placing(partial(_kept, name, pattern), _place_whole))
    return parser


def find_tags(source: str, tokens: Iterable[MarkdownToken]) -> list[Tag]:
    """Find the tags of a paragraph, in their order.

    Args:
        source: the source of the paragraph, as it was parsed.
        tokens: the inline tokens of the paragraph, from a parser of `make_parser`.
    """
    marked = sorted(chain.from_iterable(_tags(source, token) for token in tokens if _PLACE in token.meta))
    if not has_letter("".join(_outside_pictures(source, marked))):  # each alternative text is a sentence
        marked = [tag._replace(kind=Kind.BREAK) if tag.name == _PICTURE else tag for tag in marked]
    unmarked: list[Tag] = []
    done = 0
    for start, stop in [*((tag.start, tag.stop) for tag in marked), (len(source), 0)]:
        unmarked += map(_unmarked, _UNMARKED.finditer(source, done, start))
        done = stop
    return sorted([*marked, *unmarked])


def _outside_pictures(source: str, tags: Iterable[Tag]) -> Iterator[str]:
    """Yield the texts between tags that are no alternative texts of pictures."""
    done = depth = 0
    for tag in tags:
        if not depth:
            yield source[done : tag.start]
        if tag.name == _PICTURE:
            depth += 1 if tag.kind is Kind.BEGIN else -1
        done = tag.stop
    yield source[done:]


def _tags(source: str, token: MarkdownToken) -> Iterator[Tag]:
    """Give the tags of a token: one, or for a picture two, around its alternative text, and the tags in this text."""
    start, stop = token.meta[_PLACE]
    if token.type in ("code_inline", *_KEPT) or token.markup == "autolink":
        yield Tag(start, stop, Kind.KEPT)
    elif token.type == "hardbreak":
        yield Tag(start, stop, Kind.BREAK)
    elif token.type == "html_inline":
        yield _html_tag(start, stop, source)
    elif token.type == "image" and has_letter(token.content):
        text = start + len("![")
        yield Tag(start, text, Kind.BEGIN, token.tag)
        end = text + len(token.content)
        for child in token.children or []:
            if _PLACE in child.meta:  # from the beginning of the alternative text
                tags = _tags(token.content, child)
                yield from (tag._replace(start=tag.start + text, stop=tag.stop + text) for tag in tags)
        yield Tag(end, stop, Kind.END, token.tag, _reference(source, text, end, stop))
    elif token.type == "image":
        yield Tag(start, stop, Kind.ALONE)
    elif token.nesting:
        # Strong emphasis has two characters; the token's position is that of the inner one.
        outer = token.type.startswith("strong")
        kind = Kind.BEGIN if token.nesting > 0 else Kind.END
        start, stop = start - (outer and kind is Kind.BEGIN), stop + (outer and kind is Kind.END)
        yield Tag(start, stop, kind, token.tag, token.meta.get(_WRITTEN, ""))


def _reference(source: str, text: int, end: int, stop: int) -> str:
    """Write the end of a link with its label if its text is the label, as in `[text]` and `[text][]`; else "".

    Args:
        source: the source of the paragraph.
        text: where the text of the link begins.
        end: where its text ends.
        stop: where the link ends.
    """
    return f"][{' '.join(source[text:end].split())}]" if source[end:stop] in ("]", "][]") else ""


def _html_tag(start: int, stop: int, source: str) -> Tag:
    found = _HTML.match(source, start)
    name = found["name"].lower() if found else ""
    if name == "br":
        return Tag(start, stop, Kind.BREAK)
    if found is None or source.endswith("/>", start, stop):  # a comment, or an element without content
        return Tag(start, stop, Kind.ALONE)
    return Tag(start, stop, Kind.END if found["end"] else Kind.BEGIN, f"<{name}>")


def _unmarked(found: re.Match[str]) -> Tag:
    if found["kept"]:
        return Tag(*found.span(), Kind.KEPT)
    return Tag(*found.span(), Kind.BREAK if found["head"] else Kind.ALONE)


def _is_footnote(state: StateBlock, line: int) -> bool:
    return _FOOTNOTE.match(state.src, state.bMarks[line] + state.tShift[line]) is not None


def _link_definition(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Consume the definition of a link, but not that of a footnote; a rule of markdown-it."""
    return not _is_footnote(state, first) and reference(state, first, last, silent)


def _ends_at_footnote(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """End a paragraph before the definition of a footnote, which is a paragraph too; a rule of markdown-it."""
    return silent and _is_footnote(state, first)


def _kept(name: str, pattern: re.Pattern[str], state: rules.StateInline, silent: bool) -> bool:
    """Consume what a pattern matches, for a token of this name; a rule of markdown-it."""
    found = pattern.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push(name, "", 0)
    state.pos = found.end()
    return True


def _placing(rule: _Rule, place: _Placer) -> _Rule:
    """Wrap a rule so that it records the positions of its tokens."""

    def placing(state: rules.StateInline, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent:
            place(state, [token for token in state.tokens[count:] if _PLACE not in token.meta], start)
        return True

    return placing


def _place_whole(state: rules.StateInline, tokens: Sequence[MarkdownToken], start: int) -> None:
    """Record the position of a rule's single tag: the first token other than preceding text."""
    token = next((token for token in tokens if token.type != "text"), None)
    if token is None:
        return
    if token.type == "hardbreak" and state.src[start] == "\n":
        while state.src[start - 1] == " ":
            start -= 1
    token.meta[_PLACE] = (start, state.pos)


def _place_link(state: rules.StateInline, tokens: Sequence[MarkdownToken], start: int) -> None:
    """Record the positions of the two tags of a link, around its text."""
    opening, closing = (token for token in tokens if token.nesting)
    opening.meta[_PLACE] = (start, start + 1)
    end = state.md.helpers.parseLinkLabel(state, start, True)
    closing.meta[_PLACE] = (end, state.pos)
    closing.meta[_WRITTEN] = _reference(state.src, start + 1, end, state.pos)


def _place_marks(state: rules.StateInline, tokens: Sequence[MarkdownToken], start: int) -> None:
    """Record the positions of a run of marks, such as each of `***`: later rules decide their tags."""
    stop = state.pos
    for token in reversed(tokens):
        if stop == start:  # text before the run
            break
        token.meta[_PLACE] = (stop - len(token.content), stop)
        stop -= len(token.content)


_RULES: Final[dict[str, tuple[_Rule, _Placer]]] = {
    "newline": (rules.newline, _place_whole),
    "escape": (rules.escape, _place_whole),
    "backticks": (rules.backtick, _place_whole),
    "image": (rules.image, _place_whole),
    "autolink": (rules.autolink, _place_whole),
    "html_inline": (rules.html_inline, _place_whole),
    "link": (rules.link, _place_link),
    "emphasis": (rules.emphasis.tokenize, _place_marks),
    "strikethrough": (rules.strikethrough.tokenize, _place_marks),
}
