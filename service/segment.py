"""One sentence of a caller's text, and its decode, which others may share."""

import dataclasses
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.decode import Decode, DecodeStatus
from service.options import RequestOptions


class Origin(enum.Enum):
    """Where the result of a segment comes from."""

    DECODED = "the engine decoded it"
    CACHED = "it was kept from earlier"
    COALESCED = "the decode of an identical segment was shared"


_DEFAULT_OPTIONS: Final = RequestOptions()


def _ignore(_: "Segment") -> None:
    """Do nothing: nobody waits for progress."""


@dataclass(slots=True, eq=False)
class Segment:
    """One sentence; compared and hashed by identity. Lives on the event loop, as nothing of the engine does.

    Attributes:
        decode: what is asked of the engine, and what becomes of it; once it is submitted, perhaps that of an identical
            segment.
        options: what its call asks for.
        source_tokens: of its text: of the decode's, those that are not the end of the sentence or marks of languages.
        on_progress: called on the event loop when it has finished, and after every token where the options want deltas;
            not after it was withdrawn.
        origin: where its result comes from.
        submitted_s: when it was submitted, on the clock of `time.monotonic`; None: it was not. Its decode may be older.
        cancel_requested: whether it was withdrawn.
        finished: whether it has ended.
    """

    decode: Decode
    options: RequestOptions = _DEFAULT_OPTIONS
    source_tokens: int = 0
    on_progress: Callable[["Segment"], None] = _ignore
    origin: Origin = Origin.DECODED
    submitted_s: float | None = None
    cancel_requested: bool = False
    finished: bool = False

    def leave(self, now_s: float) -> None:
        """End it as it is, by its deadline or because it was withdrawn, while its decode may go on for others."""
        self.decode = dataclasses.replace(
            self.decode,
            deadline_s=self.options.deadline_s,
            target_ids=self.decode.target_ids.copy(),
            status=DecodeStatus.DECODING,
            finish_reason=None,
            error=None,
            cancel_requested=True,
        )
        self.decode.end_early(now_s)
        self.finished = True
