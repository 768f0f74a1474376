"""One sentence of a caller's text, and its decode, which others may share."""

import dataclasses
import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dragoman.errors import DragomanError
from service.constraints import Constraints
from service.decode import Attention, Decode, DecodeStatus, FinishReason, Hypothesis
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


_NOT_SUBMITTED: Final = Decode([], 0)
_DEFAULT_OPTIONS: Final = RequestOptions()


def _ignore(_: "Segment") -> None:
    """Do nothing: nobody waits for progress."""


@dataclass(slots=True, eq=False)
class Segment:
    """One sentence; compared and hashed by identity. Lives on the event loop, as nothing of the engine does.

    Times are of `time.monotonic`, in seconds; none is before the submission.

    Attributes:
        source_ids: with the end-of-sentence id; not empty.
        max_target_tokens: at which it ends with LENGTH.
        options: what its call asks for.
        text_bytes: see :class:`Decode`.
        start_ids: see :class:`Decode`.
        prefix_ids: see :class:`Decode`.
        constraints: see :class:`Decode`.
        scored_ids: see :class:`Decode`.
        marks: tokens of `source_ids` that are none of the text: the end of the sentence, and marks of languages.
        on_progress: called on the event loop when it has finished, and after every token where the options want deltas;
            not after it was withdrawn.
        decode: what becomes of it.
        origin: where its result comes from.
        submitted_s: when it was submitted; None: it was not.
        cancel_requested: whether it was withdrawn.
        finished: whether it has ended.
    """

    source_ids: list[int]
    max_target_tokens: int
    options: RequestOptions = _DEFAULT_OPTIONS
    text_bytes: int = 0
    start_ids: tuple[int, ...] = ()
    prefix_ids: tuple[int, ...] = ()
    constraints: Constraints | None = None
    scored_ids: tuple[int, ...] = ()
    marks: int = 1
    on_progress: Callable[["Segment"], None] = _ignore
    decode: Decode = _NOT_SUBMITTED
    origin: Origin = Origin.DECODED
    submitted_s: float | None = None
    cancel_requested: bool = False
    finished: bool = False

    def new_decode(self, on_progress: Callable[[Decode], None] = lambda decode: None) -> Decode:
        """Make a decode that gives all that this segment asks for."""
        options = self.options
        return Decode(
            self.source_ids,
            self.max_target_tokens,
            deadline_s=options.deadline_s,
            wants_deltas=options.wants_deltas,
            on_progress=on_progress,
            decoding=options.decoding,
            client=options.client,
            priority=options.priority,
            text_bytes=self.text_bytes,
            start_ids=self.start_ids,
            prefix_ids=self.prefix_ids,
            constraints=self.constraints,
            scored_ids=self.scored_ids,
        )

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
    def cost(self) -> int:
        """What its decode counts for in the queue, see :class:`Decode`."""
        return (len(self.source_ids) + len(self.scored_ids)) * self.options.decoding.beam_size

    @property
    def source_tokens(self) -> int:
        """Tokens of its text."""
        return len(self.source_ids) - self.marks

    @property
    def target_ids(self) -> list[int]:
        """Its translation so far, without the end-of-sentence id; not to be written to."""
        return self.decode.target_ids

    @property
    def decoded_tokens(self) -> int:
        """Target tokens so far, the end-of-sentence token counted."""
        return self.decode.decoded_tokens

    @property
    def log_probability(self) -> float:
        """See :class:`Decode`."""
        return self.decode.log_probability

    @property
    def attention(self) -> Sequence[Attention]:
        """See :class:`Decode`."""
        return self.decode.attention

    @property
    def token_log_probabilities(self) -> Sequence[float]:
        """See :class:`Decode`."""
        return self.decode.token_log_probabilities

    @property
    def hypotheses(self) -> Sequence[Hypothesis]:
        """Its best translations once it has ended without an error, its own first; at least that one."""
        return self.decode.hypotheses or (self._own_hypothesis(),)

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why it ended; None before that and where the engine failed."""
        return self.decode.finish_reason

    @property
    def error(self) -> DragomanError | None:
        """Why it failed; None if it did not."""
        return self.decode.error

    def times(self) -> Times:
        """Give the times of its decode as its own: none is earlier than its submission."""
        decode, since_s = self.decode, self.submitted_s
        times = Times(decode.admitted_s, decode.encoded_s, decode.first_token_s, decode.finished_s)
        if since_s is None:
            return times
        return Times(*[None if time_s is None else max(time_s, since_s) for time_s in times])

    def _own_hypothesis(self) -> Hypothesis:
        """Make a hypothesis of its translation: of a decode that lists none."""
        decode = self.decode
        assert decode.finish_reason is not None, "it has not ended, or failed"
        # One that was withdrawn may have no token.
        tokens = max(1, decode.decoded_tokens + len(self.start_ids[1:]))
        score = self.options.decoding.score(decode.log_probability, tokens)
        return Hypothesis(
            decode.target_ids,
            decode.log_probability,
            score,
            decode.finish_reason,
            decode.decoded_tokens,
            tuple(decode.attention),
        )
