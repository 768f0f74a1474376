"""What a program must offer to be compared: token ids in, token ids out, many at once or one after another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Sentences:
    """What both sides translate.

    Attributes:
        sources: ids of each sentence, with the end-of-sentence id.
        limits: target tokens that each may have at most.
    """

    sources: Sequence[list[int]]
    limits: Sequence[int]

    def __len__(self) -> int:
        return len(self.sources)

    def pick(self, count: int) -> "Sentences":
        """So many of them at most, taken at even distances."""
        count = min(count, len(self))
        return self.take([index * len(self) // count for index in range(count)])

    def take(self, places: Sequence[int]) -> "Sentences":
        """Those at these places."""
        return Sentences([self.sources[place] for place in places], [self.limits[place] for place in places])


class Contender(Protocol):
    """A loaded model under one choice of settings, ready to be timed."""

    def translate(self, sentences: Sentences) -> list[list[int]]:
        """All sentences, which are there from the beginning; returns their target ids in order."""

    def translate_one(self, source: list[int], limit: int) -> list[int]:
        """One sentence, with nothing else to do; returns its target ids."""

    def close(self) -> None:
        """Let go of threads and memory."""


@dataclass(frozen=True)
class Program:
    """One side of a comparison.

    Attributes:
        name: for reports.
        precision: of its arithmetic.
        offline: settings to choose from when all sentences are there at once.
        single: settings to choose from when there is one sentence at a time.
        open: loads the model under settings.
    """

    name: str
    precision: str
    offline: Sequence[Settings]
    single: Sequence[Settings]
    open: Callable[[Settings], Contender] = field(repr=False)
