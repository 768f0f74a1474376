"""What must be true of a server after any number of odd calls."""

import os
import time

from dragoman import Client
from tests.server_process import PATIENCE_S, ServerProcess


def check_at_rest(server: ServerProcess) -> None:
    """Nothing is left of any call, nothing failed inside, and a good request is answered.

    Raises:
        AssertionError: it is not so.
    """
    give_up_s = time.monotonic() + PATIENCE_S
    for gauge in ("slots_active", "queue_segments", "queue_source_tokens"):
        while server.metric(gauge):
            assert time.monotonic() < give_up_s, gauge
    assert server.metric("segments_total", reason="INTERNAL") == 0
    failures = [line for line in server.log if '"level": "error"' in line and "Method not implemented" not in line]
    assert not failures, failures[:3]
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        assert client.translate("Good morning.", model="en-de").text


def open_descriptors(server: ServerProcess) -> int:
    """Count what the server has open."""
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def check_descriptors(server: ServerProcess, before: int) -> None:
    """The server has closed what odd connections made it open.

    Raises:
        AssertionError: it has not.
    """
    give_up_s = time.monotonic() + PATIENCE_S
    while open_descriptors(server) > before + 2:  # of gRPC's own, and of the one that asks for metrics
        assert time.monotonic() < give_up_s, "descriptors are left"
        time.sleep(0.1)
