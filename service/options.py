"""What a call asks of the translation of all its texts, and for whom."""

import enum
from typing import Final, NamedTuple


class Priority(enum.IntEnum):
    """Who goes first where many wait; the smaller, the sooner."""

    INTERACTIVE = 0
    BULK = 1


class Decoding(NamedTuple):
    """The options that change the result of a segment: segments of the same ids, limit and `Decoding` share one.

    Attributes:
        stops_at_repetition: whether a segment that repeats itself is stopped, with REPETITION.
        wants_log_probability: whether log-probabilities are added up; it takes time at every step.
        beam_size: hypotheses that are kept at each step; 1: greedy decoding.
        length_penalty: the power of the length that a hypothesis' log-probability is divided by.
        alternatives: of the hypotheses, how many are wanted, the best first; at most `beam_size`.
    """

    stops_at_repetition: bool = False
    wants_log_probability: bool = False
    beam_size: int = 1
    length_penalty: float = 1.0
    alternatives: int = 0


DEFAULT_DECODING: Final = Decoding()


class RequestOptions(NamedTuple):
    """The same for all segments of a call; made once, of its first message.

    Attributes:
        decoding: how segments are decoded; whether they stop at a repetition, the server says.
        max_target_tokens: of each segment, below its limit; None or 0: its limit.
        deadline_s: when the answer is of no more use, on the clock of `time.monotonic`; None: never.
        wants_deltas: whether progress is told after each step too.
        client: who asks: clients are served in turn.
        priority: among all that wait.
        source_language: that the model knows the texts' language by; "": not told, or the only one.
        target_language: likewise.
        html: whether the texts are HTML, whose tags are kept.
        all_or_nothing: whether a text that cannot be translated ends the call.
    """

    decoding: Decoding = DEFAULT_DECODING
    max_target_tokens: int | None = None
    deadline_s: float | None = None
    wants_deltas: bool = False
    client: str = ""
    priority: Priority = Priority.INTERACTIVE
    source_language: str = ""
    target_language: str = ""
    html: bool = False
    all_or_nothing: bool = False
