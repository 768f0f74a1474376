"""What a run has found, as JSON with everything and as Markdown for people; written anew after each part."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.files import write_json, write_whole
from bench.frame import lines_of, not_held, table
from bench.gpu.runner import Outcome


class Report:
    """The outcomes so far, and the files that have them."""

    def __init__(self, head: Mapping[str, Any], json_file: Path | None, markdown_file: Path | None) -> None:
        self._head = head
        self._json_file = json_file
        self._markdown_file = markdown_file
        self.outcomes: dict[str, Outcome] = {}

    def add(self, name: str, outcome: Outcome) -> None:
        """Note what became of a part, and write all that is known."""
        self.outcomes[name] = outcome
        write_json(self._json_file, self.as_dict())
        if self._markdown_file:
            write_whole(self._markdown_file, self.as_markdown())

    @property
    def failed(self) -> list[str]:
        """Parts that ended with an error, or found that something is not as it should be."""
        return [name for name, outcome in self.outcomes.items() if outcome.error or not_held(outcome.figures)]

    def as_dict(self) -> dict[str, Any]:
        parts = {
            name: {"seconds": round(outcome.seconds, 1), "error": outcome.error, **outcome.figures}
            for name, outcome in self.outcomes.items()
        }
        return {**self._head, "parts": parts}

    def as_markdown(self) -> str:
        """Write an overview of all parts, and a section for each that has figures."""
        overview = [
            {"part": name, "seconds": round(outcome.seconds), "outcome": verdict(outcome)}
            for name, outcome in self.outcomes.items()
        ]
        lines = ["# Dragoman on a GPU", "", *(f"- {name}: {value}" for name, value in self._head.items()), ""]
        sections = [section(name, outcome) for name, outcome in self.outcomes.items() if outcome.figures]
        return "\n".join([*lines, *table(overview), "", *sections])


def verdict(outcome: Outcome) -> str:
    if outcome.error:
        return f"FAILED: {outcome.error}"
    broken = not_held(outcome.figures)
    if broken:
        return f"NOT SO: {'; '.join(broken)}"
    return "as expected" if outcome.figures.get("checks") else "done"


def section(name: str, outcome: Outcome) -> str:
    """Write a part in Markdown: its checks, its figures, its tables."""
    head = [f"## {name}", "", f"{verdict(outcome)} ({outcome.seconds:.0f} s)", ""]
    return "\n".join([*head, *lines_of(outcome.figures), ""])
