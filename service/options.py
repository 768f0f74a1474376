"""What a call asks of the translation of all its texts, and for whom."""

import enum
from typing import NamedTuple


class Priority(enum.IntEnum):
    """Who goes first where many wait; the smaller, the sooner."""

    INTERACTIVE = 0
    BULK = 1


class Terms(NamedTuple):
    """The same for all segments of a call.

    Attributes:
        max_target_tokens: of each segment, below its limit; None or 0: its limit.
        deadline_s: when the answer is of no more use, on the clock of `time.monotonic`; None: never.
        wants_deltas: whether progress is told after each step too.
        wants_log_probability: whether the result says its mean log-probability.
        client: who asks: those who wait are served in turn, client by client.
        priority: among all who wait.
        html: whether the texts are HTML, whose tags are kept.
    """

    max_target_tokens: int | None = None
    deadline_s: float | None = None
    wants_deltas: bool = False
    wants_log_probability: bool = False
    client: str = ""
    priority: Priority = Priority.INTERACTIVE
    html: bool = False
