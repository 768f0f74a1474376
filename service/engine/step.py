"""One decode step: what is asked of it, what it has found, and what is to be done with the slots then."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.decode import Attention, Decode


class Sight(Protocol):
    """What the last run of the decoder has computed for a slot, besides its next token."""

    def logits_of(self, slot: int) -> NDArray[np.floating]:
        """Give what the slot's next token was chosen from, [vocabulary_size]; good until the next run."""

    def attention_of(self, slot: int) -> Attention:
        """Give how much the run looked at each token of the slot's source."""


class Asked(NamedTuple):
    """What of the log-probabilities of a slot's next tokens is asked for.

    Attributes:
        best: of how many of the best tokens, from 1.
        ids: of which tokens besides.
    """

    best: int
    ids: Sequence[int]


class Best(NamedTuple):
    """The best next tokens of one hypothesis, the best first.

    Attributes:
        ids: of the tokens.
        log_probabilities: of each, behind what is there: natural logarithms.
        asked: those of the tokens that were asked for.
        attention: of the next token, whichever it is; None where it is not wanted.
    """

    ids: Sequence[int]
    log_probabilities: Sequence[float]
    asked: Sequence[float] = ()
    attention: Attention | None = None


class Copy(NamedTuple):
    """A slot goes on as another of the same source, whose keys differ from its own from position `first` on."""

    source: int
    target: int
    first: int


class Fork(NamedTuple):
    """The next slot begins as a copy of another."""

    source: int
    target: int


class Force(NamedTuple):
    """A slot goes on from another token than the decoder chose."""

    slot: int
    token: int


class Move(NamedTuple):
    """What is in the last slot goes into one whose segment has left."""

    source: int
    target: int


Edit: TypeAlias = Copy | Fork | Force | Move


@dataclass(slots=True)
class Step:
    """One decode step; rows read the first four attributes and add to the others.

    Attributes:
        rows: by slot.
        tokens: the next one of each slot; None where the decoder failed on it.
        best: of the slots that asked for log-probabilities, but for those on which the search graph failed.
        now_s: its time.
        edits: what is to be done with the slots, in order.
        progressed: segments to tell somebody about.
        target_tokens: how many were decoded.
    """

    rows: list["Row"]
    tokens: Sequence[int | None]
    best: Mapping[int, Best]
    now_s: float
    edits: list[Edit] = field(default_factory=list)
    progressed: list[Decode] = field(default_factory=list)
    target_tokens: int = 0

    def fork(self, row: "Row", source: int) -> int:
        """Give a row the next slot, which begins as a copy of another; gives its number."""
        slot = len(self.rows)
        self.rows.append(row)
        self.edits.append(Fork(source, slot))
        return slot


@dataclass(eq=False)
class Row(ABC):
    """A segment in its slots.

    Attributes:
        decode: the segment.
        asks: whether it is to be asked what it needs of a step.
    """

    decode: Decode
    asks: ClassVar[bool] = True

    def ask(self, slot: int, token: int, sight: Sight) -> tuple[int, Asked | None]:
        """Look at what was computed for one of its slots, and choose its token, which may be the most probable one.

        Returns:
            The token, and what the commit needs to know of log-probabilities.
        """
        return token, None

    @abstractmethod
    def commit(self, slot: int, token: int | None, step: Step) -> "Row":
        """Take the next token of one of its slots, None where there is none, and end the segment where it is complete.

        Returns:
            The row that is in the slot from now on.
        """

    def begin_with(self, token: int, attention: Attention | None, step: Step) -> None:  # noqa: B027
        """Append a token that counts for no score, where another row has forced it."""

    def move(self, source: int, target: int) -> None:  # noqa: B027
        """Note that what was in one of its slots is in another now."""
