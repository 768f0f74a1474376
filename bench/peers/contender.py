"""What a program must offer to be compared: token ids in, token ids out, many at once or one after another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench.sentences import Sentences

Settings = Mapping[str, Any]


class Contender(Protocol):
    """A loaded model under one choice of settings, ready to be timed."""

    def translate(self, sentences: Sentences) -> list[list[int]]:
        """Translate all sentences, which are there from the beginning; returns their target ids in order."""

    def close(self) -> None:
        """Let go of threads and memory."""


@dataclass(frozen=True)
class Program:
    """One side of a comparison."""

    name: str
    precision: str
    offline: Sequence[Settings]  # settings to choose from when all sentences are there at once
    single: Sequence[Settings]  # settings to choose from when there is one sentence at a time
    open: Callable[[Settings], Contender] = field(repr=False)


@dataclass(frozen=True)
class Server:
    """One side of a comparison of servers."""

    name: str
    precision: str
    choices: Sequence[Settings]
    command: Callable[[Settings], list[str]] = field(repr=False)  # starts it, once its addresses are appended


def flags(settings: Settings) -> list[str]:
    """Write settings as options of a command line."""
    return [part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", str(value))]
