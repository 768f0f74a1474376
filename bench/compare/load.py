"""Short loads on a server, one after another: its idle latency, and whether it holds a rate."""

from collections.abc import Sequence
from typing import NamedTuple

from bench.load.drive import put
from bench.load.figures import summarize
from bench.load.loops import ClosedLoop, OpenLoop, poisson_arrivals

# Beyond any latency that could hold: such a request fails, and the trial with it.
_TIMEOUT_S = 10.0


class Answered(NamedTuple):
    """How a server answered one short load.

    Attributes:
        p50_ms: latency from the moment a request was due; None where none was answered.
    """

    p50_ms: float | None
    p95_ms: float | None
    rate: float
    failed: int

    def holds(self, bound_ms: float) -> bool:
        """Return whether every request was answered, and 95 of 100 within the bound."""
        return not self.failed and self.p95_ms is not None and self.p95_ms <= bound_ms


def open_load(
    address: str, requests: Sequence[bytes], rate: float, warmup_s: float, seconds: float, seed: int
) -> Answered:
    """Send at Poisson arrivals of a rate; those of the warm-up do not count."""
    return _put(address, requests, OpenLoop(poisson_arrivals(rate, warmup_s + seconds, seed)), warmup_s)


def closed_load(address: str, requests: Sequence[bytes], clients: int, warmup_s: float, seconds: float) -> Answered:
    """Have clients send whenever they have their answer; arguments else as `open_load`."""
    return _put(address, requests, ClosedLoop(clients, warmup_s, warmup_s + seconds, None), warmup_s)


def _put(address: str, requests: Sequence[bytes], loop: OpenLoop | ClosedLoop, warmup_s: float) -> Answered:
    samples = put([address], requests, loop, warmup_s=warmup_s, timeout_s=_TIMEOUT_S)
    found = summarize(samples)
    return Answered(found["p50_e2el_ms"], found["p95_e2el_ms"], found["request_throughput"], samples.unanswered)
