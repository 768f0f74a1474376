"""The pieces of Markdown that the generated pages are made of."""

import re
from collections.abc import Iterable, Sequence
from textwrap import dedent

# Code is left as it is; of other text, names of pages become links, and what looks like a tag is shown.
_SPECIAL = re.compile(r"(?P<code>`[^`]*`)|\bdocs/(?P<page>[\w-]+\.md)|(?P<tag><)")


def paragraphs(text: str, language: str = "python") -> str:
    """Write a docstring or a comment: each paragraph on one line, an indented one as code in the language."""
    return "\n\n".join(_paragraph(each, language) for each in dedent(text).strip("\n").split("\n\n"))


def one_line(text: str) -> str:
    """Write a text for a list or a table."""
    return _SPECIAL.sub(_written, " ".join(text.split()))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; a cell is one line."""
    lines = [heads, ["---"] * len(heads), *[[cell.replace("|", "\\|") for cell in row] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str, language: str) -> str:
    """Write a block of code."""
    return f"```{language}\n{text}\n```"


def _paragraph(text: str, language: str) -> str:
    if all(line.startswith(" ") for line in text.splitlines()):
        return code(dedent(text), language)
    return one_line(text)


def _written(match: re.Match[str]) -> str:
    if page := match["page"]:
        return f"[{page}](../{page})"
    return match["code"] or "\\<"
