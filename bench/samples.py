"""What a load test has seen so far: one number a request for the times, running sums for the rest."""

# Python 3.11 cannot evaluate array[float].
from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Samples:
    """The requests that count: those that were due after the warm-up. All times in seconds since the start.

    Attributes:
        warmup_s: Requests due before this moment do not count.
        latency_s: One for each request that succeeded: from when it was due to its answer.
        send_delay_s: One for each request that has ended: from when it was due to when it was sent.
        sentences: Translations received.
        source_tokens: What the server counted in them.
        target_tokens: What the server produced for them.
        errors: Failed requests by (gRPC code, reason).
        messages: For each key of `errors` the message of the first.
        warmup_requests: Ended requests that did not count.
        last_ended_s: When the last request ended that counts; 0 before any.
    """

    warmup_s: float = 0.0
    latency_s: array[float] = field(default_factory=lambda: array("d"))
    send_delay_s: array[float] = field(default_factory=lambda: array("d"))
    sentences: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    messages: dict[tuple[str, str], str] = field(default_factory=dict)
    warmup_requests: int = 0
    last_ended_s: float = 0.0

    @property
    def completed(self) -> int:
        """Requests that succeeded."""
        return len(self.latency_s)

    @property
    def failed(self) -> int:
        """Requests that ended in an error."""
        return len(self.send_delay_s) - len(self.latency_s)

    def succeeded(
        self,
        due_s: float,
        sent_s: float,
        ended_s: float,
        *,
        sentences: int,
        source_tokens: int,
        target_tokens: int,
    ) -> None:
        """Records one request that was answered."""
        if self._counts(due_s, sent_s, ended_s):
            self.latency_s.append(ended_s - due_s)
            self.sentences += sentences
            self.source_tokens += source_tokens
            self.target_tokens += target_tokens

    def ended_in_error(
        self, due_s: float, sent_s: float, ended_s: float, *, code: str, reason: str, message: str
    ) -> None:
        """Records one request that failed."""
        if self._counts(due_s, sent_s, ended_s):
            self.errors[code, reason] += 1
            self.messages.setdefault((code, reason), message)

    def _counts(self, due_s: float, sent_s: float, ended_s: float) -> bool:
        if due_s < self.warmup_s:
            self.warmup_requests += 1
            return False
        self.send_delay_s.append(sent_s - due_s)
        self.last_ended_s = max(self.last_ended_s, ended_s)
        return True
