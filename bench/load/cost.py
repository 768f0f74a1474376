"""What the calls of a load cost their servers, in processor time. Linux only."""

import time
from collections.abc import Sequence

from bench.load.drive import put
from bench.load.grpc_calls import CHANNELS
from bench.load.loops import ClosedLoop
from bench.memory import processor_s
from bench.server_process import ServerError

_TIMEOUT_S = 60.0


def cost(
    addresses: Sequence[str],
    pids: Sequence[int],
    requests: Sequence[bytes],
    clients: int,
    seconds: float,
    connections: int = CHANNELS,
) -> dict[str, float]:
    """Measure a closed loop whose calls are all answered, or all refused.

    Args:
        pids: the processes of the servers.

    Raises:
        ServerError: some of the calls were answered, and some were not.
    """
    before_s, began_s = sum(map(processor_s, pids)), time.monotonic()
    loop = ClosedLoop(clients, 0.0, seconds, None)
    samples = put(addresses, requests, loop, timeout_s=_TIMEOUT_S, connections=connections)
    took_s, spent_s = time.monotonic() - began_s, sum(map(processor_s, pids)) - before_s
    if samples.completed and samples.unanswered:
        raise ServerError(f"a server answered {samples.completed} calls, and {samples.unanswered} not")
    calls = samples.completed + samples.unanswered
    return {"cpu_ms": 1e3 * spent_s / calls, "calls_per_s": calls / took_s}
