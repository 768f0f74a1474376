"""Waiting in tests for what another process or thread does."""

import time
from collections.abc import Callable

from tests.server_process import PATIENCE_S, ServerProcess


def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds.

    Raises:
        AssertionError: it never does.
    """
    give_up_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_s
        time.sleep(0.02)


def until_free(server: ServerProcess) -> None:
    """Wait until the server decodes nothing, and nothing waits; errors are those of :func:`until`."""
    until(lambda: not (server.metric("slots_active") or server.metric("queue_segments")))
