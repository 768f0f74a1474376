"""What a load test has seen so far: a row a request, in columns."""

# Python 3.11 cannot evaluate array[float].
from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import grpc
import numpy as np
from numpy.typing import NDArray

from dragoman import errors


class Outcome(Enum):
    ANSWERED = "answered"
    REJECTED = "rejected"  # before any work: the server has too much of it, or the caller may not ask so often
    CANCELLED = "cancelled"
    FAILED = "failed"


class Ending(NamedTuple):
    """How requests ended.

    Attributes:
        reason: of the error; empty for an answer.
    """

    code: str
    reason: str = ""
    message: str = ""

    @property
    def outcome(self) -> Outcome:
        if self.code == grpc.StatusCode.OK.name:
            return Outcome.ANSWERED
        if self.code == grpc.StatusCode.CANCELLED.name:
            return Outcome.CANCELLED
        # gRPC itself says RESOURCE_EXHAUSTED of messages that are too large, without a reason of ours.
        exhausted = self.code == grpc.StatusCode.RESOURCE_EXHAUSTED.name
        refused = exhausted and self.reason != errors.UnrecognizedError.reason
        unreachable = self.reason == errors.DeadlineUnreachableError.reason
        return Outcome.REJECTED if refused or unreachable else Outcome.FAILED


@dataclass(frozen=True)
class Table:
    """The requests that count, a row each: all arrays are [requests], all times seconds since the end of the warm-up.

    Attributes:
        first_text_s: when the first piece of a streamed translation was there; NaN where none was.
        ending: how it ended, as an index of `endings`; 0: it was answered.
        endings: how requests ended; the first is an answer.
    """

    due_s: NDArray[np.float64]
    sent_s: NDArray[np.float64]
    ended_s: NDArray[np.float64]
    first_text_s: NDArray[np.float64]
    ending: NDArray[np.uint32]
    bulk: NDArray[np.bool_]
    sentences: NDArray[np.uint32]
    source_tokens: NDArray[np.uint32]
    target_tokens: NDArray[np.uint32]
    endings: list[Ending]

    @property
    def answered(self) -> NDArray[np.bool_]:
        """[requests] which were answered."""
        return self.with_outcome(Outcome.ANSWERED)

    def only(self, rows: NDArray[np.bool_]) -> Table:
        columns = {name: column[rows] for name, column in vars(self).items() if name != "endings"}
        return Table(**columns, endings=self.endings)

    def with_outcome(self, outcome: Outcome) -> NDArray[np.bool_]:
        """Return [requests] which had this outcome."""
        became = np.array([ending.outcome is outcome for ending in self.endings], dtype=np.bool_)
        return became[self.ending]


def _doubles() -> array[float]:
    return array("d")


def _counts() -> array[int]:
    return array("I")


@dataclass
class Samples:
    """The requests that count: those that were due after the warm-up. All times in seconds since the start.

    Attributes:
        endings: how requests ended so far; the first is an answer.
        gaps_s: of streams: the time from each piece of a text to the next one.
    """

    warmup_s: float = 0.0
    endings: list[Ending] = field(default_factory=lambda: [Ending(grpc.StatusCode.OK.name)])
    gaps_s: array[float] = field(default_factory=_doubles)
    warmup_requests: int = 0
    completed: int = 0
    _due_s: array[float] = field(default_factory=_doubles)
    _sent_s: array[float] = field(default_factory=_doubles)
    _ended_s: array[float] = field(default_factory=_doubles)
    _first_text_s: array[float] = field(default_factory=_doubles)
    _ending: array[int] = field(default_factory=_counts)
    _bulk: array[int] = field(default_factory=lambda: array("B"))
    _sentences: array[int] = field(default_factory=_counts)
    _source_tokens: array[int] = field(default_factory=_counts)
    _target_tokens: array[int] = field(default_factory=_counts)
    _known: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def unanswered(self) -> int:
        return len(self._due_s) - self.completed

    def succeeded(
        self,
        due_s: float,
        sent_s: float,
        ended_s: float,
        *,
        sentences: int,
        source_tokens: int,
        target_tokens: int,
        bulk: bool = False,
        first_text_s: float = math.nan,
        gaps_s: array[float] | None = None,
    ) -> None:
        if self._counts(due_s, sent_s, ended_s, bulk):
            self.completed += 1
            self._ending.append(0)
            self._sentences.append(sentences)
            self._source_tokens.append(source_tokens)
            self._target_tokens.append(target_tokens)
            self._first_text_s.append(first_text_s)
            self.gaps_s.extend(gaps_s or ())

    def ended_in_error(
        self, due_s: float, sent_s: float, ended_s: float, *, code: str, reason: str, message: str, bulk: bool = False
    ) -> None:
        if self._counts(due_s, sent_s, ended_s, bulk):
            if (code, reason) not in self._known:
                self._known[code, reason] = len(self.endings)
                self.endings.append(Ending(code, reason, message))
            self._ending.append(self._known[code, reason])
            self._first_text_s.append(math.nan)
            for column in (self._sentences, self._source_tokens, self._target_tokens):
                column.append(0)

    def table(self) -> Table:
        return Table(
            due_s=np.array(self._due_s) - self.warmup_s,
            sent_s=np.array(self._sent_s) - self.warmup_s,
            ended_s=np.array(self._ended_s) - self.warmup_s,
            first_text_s=np.array(self._first_text_s) - self.warmup_s,
            ending=np.array(self._ending, dtype=np.uint32),
            bulk=np.array(self._bulk, dtype=np.bool_),
            sentences=np.array(self._sentences, dtype=np.uint32),
            source_tokens=np.array(self._source_tokens, dtype=np.uint32),
            target_tokens=np.array(self._target_tokens, dtype=np.uint32),
            endings=list(self.endings),
        )

    def _counts(self, due_s: float, sent_s: float, ended_s: float, bulk: bool) -> bool:
        if due_s < self.warmup_s:
            self.warmup_requests += 1
            return False
        self._due_s.append(due_s)
        self._sent_s.append(sent_s)
        self._ended_s.append(ended_s)
        self._bulk.append(bulk)
        return True
