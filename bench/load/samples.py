"""What a load test has seen so far: a row a request, in columns."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final, NamedTuple

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
    """How requests ended."""

    code: str
    reason: str = ""  # of the error; empty for an answer
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


ANSWERED: Final = Ending(grpc.StatusCode.OK.name)
Column = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """The requests that count, a row each: all arrays are [requests], all times in s since the end of the warm-up."""

    due_s: Column
    sent_s: Column
    ended_s: Column
    first_text_s: Column  # when the first piece of a streamed translation was there; NaN where none was
    sentences: Column
    source_tokens: Column
    target_tokens: Column
    ending: NDArray[np.int64]  # how it ended, as an index of `endings`; 0: it was answered
    bulk: NDArray[np.bool_]
    endings: list[Ending]  # how requests ended; the first is an answer

    @property
    def answered(self) -> NDArray[np.bool_]:
        """[requests] which were answered."""
        return self.with_outcome(Outcome.ANSWERED)

    @property
    def latency_ms(self) -> Column:
        """[answered requests] milliseconds from the moment each was due to its answer."""
        return (self.ended_s - self.due_s)[self.answered] * 1e3

    def only(self, rows: NDArray[np.bool_]) -> Table:
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return Table(**columns, endings=self.endings)

    def with_outcome(self, outcome: Outcome) -> NDArray[np.bool_]:
        """Return [requests] which had this outcome."""
        became = np.array([ending.outcome is outcome for ending in self.endings], dtype=np.bool_)
        return became[self.ending]


_COLUMNS: Final = tuple(field.name for field in fields(Table) if field.name != "endings")


class Samples:
    """The requests that count: those that were due after the warm-up. All times in seconds since the start."""

    def __init__(self, warmup_s: float = 0.0) -> None:
        self.warmup_s = warmup_s
        self.endings = [ANSWERED]  # how requests ended so far; the first is an answer
        self.gaps_s = array("d")  # of streams: the time from each piece of a text to the next one
        self.warmup_requests = 0
        self.completed = 0
        self.unanswered = 0
        self._cells = array("d")  # row after row, in the order of `Table`
        self._known: dict[tuple[str, ...], int] = {ANSWERED[:2]: 0}

    def add(
        self,
        due_s: float,
        sent_s: float,
        ended_s: float,
        ending: Ending = ANSWERED,
        *,
        sentences: int = 0,
        source_tokens: int = 0,
        target_tokens: int = 0,
        bulk: bool = False,
        first_text_s: float = math.nan,
        gaps_s: Iterable[float] = (),
    ) -> None:
        if due_s < self.warmup_s:
            self.warmup_requests += 1
            return
        place = self._known.setdefault(ending[:2], len(self.endings))
        if place == len(self.endings):
            self.endings.append(ending)
        self.completed += place == 0
        self.unanswered += place != 0
        self._cells.extend((due_s, sent_s, ended_s, first_text_s, sentences, source_tokens, target_tokens, place, bulk))
        self.gaps_s.extend(gaps_s)

    def table(self) -> Table:
        columns: dict[str, Any] = dict(zip(_COLUMNS, np.array(self._cells).reshape(-1, len(_COLUMNS)).T, strict=True))
        for name in ("due_s", "sent_s", "ended_s", "first_text_s"):
            columns[name] = columns[name] - self.warmup_s
        columns["ending"] = columns["ending"].astype(np.int64)
        columns["bulk"] = columns["bulk"].astype(np.bool_)
        return Table(**columns, endings=list(self.endings))
