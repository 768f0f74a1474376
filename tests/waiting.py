"""Waiting in tests for what another process or thread does."""

import time
from collections.abc import Callable

from tests.server_process import PATIENCE_S, ServerProcess

_POLL_S = 0.05


def until(condition: Callable[[], object], what: str = "the condition", timeout_s: float = PATIENCE_S) -> float:
    """Wait until a condition holds; gives the seconds that it took.

    Raises:
        TimeoutError: it never does.
    """
    began_s = time.monotonic()
    while not condition():
        if time.monotonic() > began_s + timeout_s:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        time.sleep(_POLL_S)
    return time.monotonic() - began_s


def until_free(server: ServerProcess) -> None:
    """Wait until the server decodes nothing, and nothing waits; errors are those of :func:`until`."""
    until(lambda: not (server.metric("slots_active") or server.metric("queue_segments")))
