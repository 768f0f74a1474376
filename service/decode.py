"""The unit of work of the engine: the decode of one source, for one segment or for several that share the decode."""

import enum
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DeadlineExceededError, DragomanError, TextFailedError
from service.constraints import Constraints
from service.options import DEFAULT_DECODING, Decoding, Priority


class DecodeStatus(enum.Enum):
    """The state of a decode."""

    WAITING = "in the mailbox, no work done"
    ENCODING = "taken by an engine thread, its memory not yet in a slot"
    DECODING = "in a slot, a token a step"
    FINISHED = "ended by the model, its limit or an error"
    CANCELLED = "withdrawn by all who waited for it"


class FinishReason(enum.Enum):
    """Why a decode ended."""

    EOS = "the model ended it"
    LENGTH = "it reached its limit of target tokens"
    REPETITION = "it repeated itself"
    CANCELLED = "the caller withdrew it"
    DEADLINE = "its deadline passed"


def worst(reasons: Collection[FinishReason | None]) -> FinishReason:
    """Choose the worst reason of the translations that become one text."""
    for reason in (FinishReason.LENGTH, FinishReason.REPETITION):
        if reason in reasons:
            return reason
    return FinishReason.EOS


# The attention of one token of a translation over the tokens of the source, [source tokens]; the numbers add up to 1.
Attention = NDArray[np.float32]


class Hypothesis(NamedTuple):
    """One way to translate a source, of those that a beam search has found.

    Attributes:
        target_ids: without the end-of-sentence id.
        log_probability: the sum of the natural logarithms of the probabilities of the tokens that the model chose, the
            end-of-sentence token counted.
        score: orders the hypotheses: the log-probability divided by a power of the number of tokens.
        finish_reason: why it ended.
        decoded_tokens: how many tokens the model chose, the end-of-sentence token counted.
        attention: attention of each of `target_ids`; () where it is not wanted.
    """

    target_ids: Sequence[int]
    log_probability: float
    score: float
    finish_reason: FinishReason
    decoded_tokens: int
    attention: Sequence[Attention] = ()


@dataclass(slots=True, eq=False)
class Decode:
    """One source that the engine decodes; compared and hashed by identity.

    Times are of `time.monotonic`, in seconds.

    Attributes:
        source_ids: with the end-of-sentence id; not empty.
        max_target_tokens: most target tokens; at this number the decode ends with LENGTH.
        deadline_s: time at which the decode ends with DEADLINE and a DeadlineExceededError; None: never.
        wants_deltas: whether `on_progress` is called after every token, too (and may then see the end early).
        on_progress: called on the event loop when it has finished; not after it was cancelled.
        decoding: the options that change its result.
        client: the client in whose turn it waits, see `RequestOptions`.
        priority: its priority in the queue.
        text_bytes: bytes of its text and of a translation that is to be scored, in UTF-8.
        start_ids: a start id, and then tokens before the translation that are no part of it; (): the model's start id
            alone.
        prefix_ids: the first tokens of the translation, given by the caller; fewer than `max_target_tokens`.
        constraints: terms that the translation has to hold; None: none.
        scored_ids: all tokens of a given translation that is to be scored, the end-of-sentence id at its end; (): the
            translation is to be found.
        target_ids: target ids so far, without the end-of-sentence id; grows by appending only.
        log_probability: the sum of the natural logarithms of the probabilities of the tokens decoded so far, the
            end-of-sentence token counted; 0 where not wanted.
        attention: attention of each of `target_ids`, once the decode has ended; empty where it is not wanted.
        token_log_probabilities: log-probability of each of `scored_ids`.
        hypotheses: results of a beam search, the best first, which is its translation; as many as are wanted.
        status: its state.
        finish_reason: why it ended; None before its end, and where the engine failed.
        error: why it failed; None if it did not fail.
        cancel_requested: set by the mailbox; read before the next step.
        forced_ids: start ids and prefix ids that still have to replace the tokens that the decoder chooses.
        tokens: number of given tokens: of the source, and of a translation that is to be scored.
        slots: number of slots that it takes: one for each hypothesis that is kept.
        cost: its share of the work for queues and limits: `tokens`, once for each slot that it takes.
        cycle_tokens: length of a cycle that ends it, in tokens; 0: not known yet.
        submitted_s: when it entered the mailbox.
        admitted_s: when an engine thread took it.
        encoded_s: when its encoder memory was ready.
        first_token_s: when its first token was decoded.
        finished_s: when it ended.
    """

    # The submitter fills these fields.
    source_ids: list[int]
    max_target_tokens: int
    deadline_s: float | None = None
    wants_deltas: bool = False
    on_progress: Callable[["Decode"], None] = lambda _: None
    decoding: Decoding = DEFAULT_DECODING
    client: str = ""
    priority: Priority = Priority.INTERACTIVE
    text_bytes: int = 0
    start_ids: tuple[int, ...] = ()
    prefix_ids: tuple[int, ...] = ()
    constraints: Constraints | None = None
    scored_ids: tuple[int, ...] = ()
    # The engine fills these fields.
    target_ids: list[int] = field(default_factory=list)
    log_probability: float = 0.0
    attention: list[Attention] = field(default_factory=list)
    token_log_probabilities: list[float] = field(default_factory=list)
    hypotheses: Sequence[Hypothesis] = ()
    status: DecodeStatus = DecodeStatus.WAITING
    finish_reason: FinishReason | None = None
    error: DragomanError | None = None
    cancel_requested: bool = False
    forced_ids: tuple[int, ...] = field(init=False)
    tokens: int = field(init=False)
    slots: int = field(init=False)
    cost: int = field(init=False)
    cycle_tokens: int = 0
    submitted_s: float | None = None
    admitted_s: float | None = None
    encoded_s: float | None = None
    first_token_s: float | None = None
    finished_s: float | None = None

    def __post_init__(self) -> None:
        self.forced_ids = self.start_ids[1:] + self.prefix_ids
        self.tokens = len(self.source_ids) + len(self.scored_ids)
        self.slots = self.decoding.beam_size
        self.cost = self.tokens * self.slots

    @property
    def given_ids(self) -> list[int]:
        """All target ids that the caller gives: of a prefix, of terms, of a translation that is to be scored."""
        terms = () if self.constraints is None else self.constraints.terms
        of_terms = [id_ for term in terms for form in term for id_ in form]
        return [*self.start_ids[1:], *self.prefix_ids, *of_terms, *self.scored_ids]

    @property
    def finished(self) -> bool:
        """Whether the decode has ended."""
        return self.status in (DecodeStatus.FINISHED, DecodeStatus.CANCELLED)

    @property
    def decoded_tokens(self) -> int:
        """Target tokens that the model chose so far, the end-of-sentence token counted."""
        given = min(len(self.target_ids), len(self.prefix_ids))
        return len(self.target_ids) - given + (self.finish_reason is FinishReason.EOS)

    @property
    def engine_s(self) -> float:
        """Seconds from the start of the decode on an engine thread to its end; 0 where one of the times is missing."""
        return 0.0 if self.admitted_s is None or self.finished_s is None else self.finished_s - self.admitted_s

    @property
    def best(self) -> Sequence[Hypothesis]:
        """The best translations, once the decode has ended without an error; the first is its translation."""
        if self.hypotheses:
            return self.hypotheses
        assert self.finish_reason is not None, "it has not ended, or failed"
        # A withdrawn decode may have no token.
        tokens = max(1, self.decoded_tokens + len(self.start_ids[1:]))
        return (
            Hypothesis(
                self.target_ids,
                self.log_probability,
                self.decoding.score(self.log_probability, tokens),
                self.finish_reason,
                self.decoded_tokens,
                tuple(self.attention),
            ),
        )

    def finish(self, reason: FinishReason, now_s: float) -> None:
        """End it, by the model, its limit or the caller."""
        self.finish_reason = reason
        self.finished_s = now_s
        # Last: another thread may read everything else once the status says so.
        self.status = DecodeStatus.CANCELLED if reason is FinishReason.CANCELLED else DecodeStatus.FINISHED

    def fail(self, error: DragomanError, now_s: float) -> None:
        """End it with an error."""
        self.finish_reason = FinishReason.DEADLINE if isinstance(error, DeadlineExceededError) else None
        self.error = error
        self.finished_s = now_s
        self.status = DecodeStatus.FINISHED

    def end_early(self, now_s: float) -> bool:
        """End the decode if its deadline has passed or it was cancelled; tells whether it is finished."""
        deadline_s = self.deadline_s  # read once: the event loop changes it when segments join or leave
        if deadline_s is not None and now_s >= deadline_s:
            tokens = "its end" if self.slots > 1 else f"token {len(self.target_ids) + 1}"
            done = "its first token" if self.first_token_s is None else tokens
            self.fail(DeadlineExceededError(f"the deadline passed before {done}"), now_s)
        elif self.cancel_requested:
            self.finish(FinishReason.CANCELLED, now_s)
        return self.finished

    def fail_alone(self, now_s: float) -> None:
        """End the decode because a graph fails on it, but not on others."""
        self.fail(TextFailedError("the engine fails on this text"), now_s)


def notify(news: Iterable[Any]) -> None:
    """Call `on_progress` of all decodes, or of all segments, except cancelled ones.

    Raises:
        Exception: the last error of an `on_progress`.
    """
    failure: Exception | None = None
    for each in news:
        if each.cancel_requested:
            continue
        try:
            each.on_progress(each)
        except Exception as error:  # an error of one caller must not affect the others
            failure = error
    if failure is not None:
        raise failure
