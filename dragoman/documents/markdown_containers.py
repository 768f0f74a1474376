"""Fences of Markdown containers, such as `:::note`: they stay, except their titles; their content is Markdown.

https://docusaurus.io/docs/markdown-features/admonitions, https://pandoc.org/MANUAL.html#divs-and-spans,
https://mystmd.org/guide/directives
"""

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock

COLUMN: Final = "column"  # the column of a title in its line; key in the token's meta
_BLANKS: Final = " \t"
_LEAST: Final = 3  # minimum number of colons of a fence
_HEAD: Final = re.compile(r"(?P<colons>:{3,})[ \t]*(?P<name>\{[^{}]*\}|[A-Za-z][\w:.-]*)?(?:\{[^{}]*\})?[ \t]*")
_OPTION: Final = re.compile(r":[\w-]+:(?:\s|\Z)")
_PATH: Final = re.compile(r"[./]\w")
# Directives of MyST that hold no text.
_VERBATIM: Final = frozenset(
    {
        *("code", "code-block", "code-cell", "sourcecode", "literalinclude", "math", "mermaid", "raw", "eval-rst"),
        *("toctree", "include", "image", "iframe", "csv-table", "bibliography"),
    }
)


def enable_containers(parser: MarkdownIt) -> None:
    """Add the rule for container fences to a parser."""
    parser.block.ruler.before(
        "fence", "container", _container, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )


def _container(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Consume the line of a fence, and options or content that are no text; a rule of markdown-it."""
    line = _line(state, first)
    head = _HEAD.match(line)
    if head is None or state.is_code_block(first):
        return False
    begin, stop = _title(line, head.end())
    if begin < stop and head["name"] is None:  # ordinary text that begins with colons
        return False
    if silent:
        return True
    name = (head["name"] or "").strip("{}").strip()
    state.line = first + 1
    if name in _VERBATIM:
        state.line = _behind_fence(state, first + 1, last, len(head["colons"]))
    elif (head["name"] or "").startswith("{"):
        state.line = _behind_options(state, first + 1, last)
    title = line[begin:stop]
    if title and name not in _VERBATIM and ":" not in name and not _is_path(title):
        token = state.push("inline", "", 0)
        token.content, token.map, token.children = title, [first, first + 1], []
        place = state.bMarks[first] + state.tShift[first] + begin
        token.meta[COLUMN] = place - (state.src.rfind("\n", 0, place) + 1)
    return True


def _line(state: StateBlock, number: int) -> str:
    """Give a line without its indent."""
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _title(line: str, begin: int) -> tuple[int, int]:
    """Find the span of a container's title, without trailing colons and attributes, and without its brackets."""
    rest = line[begin:].rstrip(_BLANKS)
    bare = rest.rstrip(":")
    if len(rest) - len(bare) >= _LEAST:
        rest = bare.rstrip(_BLANKS)
    if rest.endswith("}") and "{" in rest:
        rest = rest[: rest.rindex("{")].rstrip(_BLANKS)
    if rest.startswith("[") and rest.endswith("]"):
        return begin + 1, begin + len(rest) - 1
    return begin, begin + len(rest)


def _is_path(title: str) -> bool:
    return " " not in title and _PATH.search(title) is not None


def _behind_fence(state: StateBlock, first: int, last: int, colons: int) -> int:
    """Find the line after the end of a container."""
    for number in range(first, last):
        line = _line(state, number).rstrip(_BLANKS)
        if line and state.sCount[number] < state.blkIndent:  # the list around the container has ended
            return number
        if len(line) >= colons and not line.strip(":"):
            return number + 1
    return last


def _behind_options(state: StateBlock, first: int, last: int) -> int:
    """Find the line after the options of a directive."""
    number = first
    if number < last and _line(state, number).rstrip() == "---":
        ends = (each for each in range(number + 1, last) if _line(state, each).rstrip() == "---")
        return next(ends, number - 1) + 1
    while number < last and _OPTION.match(_line(state, number)):
        number += 1
    return number
