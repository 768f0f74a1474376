"""One sentence of a caller's text, and its decode, which others may share."""

import dataclasses
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from service.decode import Decode, DecodeStatus
from service.options import RequestOptions


class Origin(enum.Enum):
    """Where the result of a segment comes from."""

    DECODED = "the engine decoded it"
    CACHED = "it was kept from earlier"
    COALESCED = "the decode of an identical segment was shared"


class Times(NamedTuple):
    """When a segment came so far; None: it has not yet.

    Attributes:
        admitted_s: when an engine thread took it.
        encoded_s: when its encoder memory was there.
        first_token_s: when its first token was decoded.
        finished_s: when it ended.
    """

    admitted_s: float | None
    encoded_s: float | None
    first_token_s: float | None
    finished_s: float | None


_DEFAULT_OPTIONS: Final = RequestOptions()


def _ignore(_: "Segment") -> None:
    """Do nothing: nobody waits for progress."""


@dataclass(slots=True, eq=False)
class Segment:
    """One sentence; compared and hashed by identity. Lives on the event loop, as nothing of the engine does.

    Times are of `time.monotonic`, in seconds; none is before the submission.

    Attributes:
        decode: what is asked of the engine, and what becomes of it; once it is submitted, perhaps that of an identical
            segment.
        options: what its call asks for.
        marks: source tokens that are none of the text: the end of the sentence, and marks of languages.
        on_progress: called on the event loop when it has finished, and after every token where the options want deltas;
            not after it was withdrawn.
        origin: where its result comes from.
        submitted_s: when it was submitted; None: it was not.
        cancel_requested: whether it was withdrawn.
        finished: whether it has ended.
    """

    decode: Decode
    options: RequestOptions = _DEFAULT_OPTIONS
    marks: int = 1
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

    @property
    def source_tokens(self) -> int:
        """Tokens of its text."""
        return len(self.decode.source_ids) - self.marks

    def times(self) -> Times:
        """Give the times of its decode as its own: none is earlier than its submission."""
        decode, since_s = self.decode, self.submitted_s or 0.0
        times_s = decode.admitted_s, decode.encoded_s, decode.first_token_s, decode.finished_s
        return Times(*[None if time_s is None else max(time_s, since_s) for time_s in times_s])
