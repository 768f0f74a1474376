"""One sentence of a caller's text, and its decode, which other segments may share."""

import dataclasses
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from service.decode import Decode, DecodeStatus
from service.options import RequestOptions


class Origin(enum.Enum):
    """The origin of the result of a segment."""

    DECODED = "the engine decoded it"
    CACHED = "it was kept from earlier"
    COALESCED = "the decode of an identical segment was shared"


_DEFAULT_OPTIONS: Final = RequestOptions()


@dataclass(slots=True, eq=False)
class Segment:
    """One sentence; compared and hashed by identity. Lives on the event loop; the engine does not know segments.

    Attributes:
        decode: its work for the engine, with the result; after the submission, perhaps the decode of an identical
            segment.
        options: the options of its call.
        source_tokens: number of source tokens without the end-of-sentence token and language tokens.
        on_progress: called on the event loop when it has finished, and after every token where the options want deltas;
            not after it was withdrawn.
        origin: origin of its result.
        submitted_s: when it was submitted, on the clock of `time.monotonic`; None: it was not. Its decode may be older.
        cancel_requested: whether it was withdrawn.
        finished: whether it has ended.
    """

    decode: Decode
    options: RequestOptions = _DEFAULT_OPTIONS
    source_tokens: int = 0
    on_progress: Callable[["Segment"], None] = lambda _: None
    origin: Origin = Origin.DECODED
    submitted_s: float | None = None
    cancel_requested: bool = False
    finished: bool = False

    def leave(self, now_s: float) -> None:
        """End the segment early, by its deadline or a withdrawal; its decode may go on for other segments."""
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
