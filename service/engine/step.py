"""One decode step: the questions of the rows, the results, and the edits of the slots that follow."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.decode import Attention, Decode


class RunOutputs(Protocol):
    """The results of the last run of the decoder for a slot, besides its next token."""

    def logits_of(self, slot: int) -> NDArray[np.floating]:
        """Give the logits of the slot's next token, [vocabulary_size]; valid until the next run."""

    def attention_of(self, slot: int) -> Attention:
        """Give the attention of the run over the tokens of the slot's source."""


class Asked(NamedTuple):
    """The next tokens of a slot whose log-probabilities are asked for.

    Attributes:
        best: number of best tokens, from 1.
        ids: ids of further tokens.
    """

    best: int
    ids: Sequence[int]


class Best(NamedTuple):
    """The best next tokens of one hypothesis, the best first.

    Attributes:
        ids: ids of the tokens.
        log_probabilities: log-probability of each token after the hypothesis, natural logarithm.
        asked: log-probabilities of the tokens that were asked for.
        attention: attention of the step, the same for every next token; None where it is not wanted.
    """

    ids: Sequence[int]
    log_probabilities: Sequence[float]
    asked: Sequence[float] = ()
    attention: Attention | None = None


class Copy(NamedTuple):
    """A slot becomes a copy of another with the same source; positions before `first` are equal already."""

    source: int
    target: int
    first: int


class Fork(NamedTuple):
    """The next slot begins as a copy of another."""

    source: int
    target: int


class Force(NamedTuple):
    """A slot continues from another token than the decoder chose."""

    slot: int
    token: int


class Move(NamedTuple):
    """The row of the last slot moves into a slot whose segment has left."""

    source: int
    target: int


Edit: TypeAlias = Copy | Fork | Force | Move


@dataclass(slots=True)
class Step:
    """One decode step; rows read the attributes up to `now_s` and add to the others.

    Attributes:
        rows: rows by slot.
        tokens: next token of each slot; None where the decoder failed on the slot.
        best: best tokens of the slots that asked for them, except for slots on which the search graph failed.
        now_s: time of the step.
        edits: changes of the slots, in order.
        progressed: segments whose callers are to be told.
        target_tokens: number of decoded tokens.
    """

    rows: list["Row"]
    tokens: Sequence[int | None]
    best: Mapping[int, Best]
    now_s: float
    edits: list[Edit] = field(default_factory=list)
    progressed: list[Decode] = field(default_factory=list)
    target_tokens: int = 0

    def fork(self, row: "Row", source: int) -> int:
        """Give a row the next slot, which begins as a copy of `source`; gives the number of the new slot."""
        slot = len(self.rows)
        self.rows.append(row)
        self.edits.append(Fork(source, slot))
        return slot


@dataclass(eq=False)
class Row(ABC):
    """A segment in its slots.

    Attributes:
        decode: the segment.
        asks: whether `ask` has to be called at each step.
    """

    decode: Decode
    asks: ClassVar[bool] = True

    def ask(self, slot: int, token: int, outputs: RunOutputs) -> tuple[int, Asked | None]:
        """Read the results for one of its slots, and choose the slot's token; `token` is the most probable one.

        Returns:
            The chosen token, and the log-probabilities that the commit needs.
        """
        return token, None

    @abstractmethod
    def commit(self, slot: int, token: int | None, step: Step) -> "Row":
        """Take the next token of one of its slots, None where the slot failed, and end the segment if it is complete.

        Returns:
            The row that is in the slot from now on.
        """

    def begin_with(self, token: int, attention: Attention | None, step: Step) -> None:  # noqa: B027
        """Append a token that another row has forced; the token does not count in the score."""

    def move(self, source: int, target: int) -> None:  # noqa: B027
        """Note that one of its slots has moved: `source` is `target` now."""
