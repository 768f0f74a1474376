"""Real sockets: servers that answer, one that is stuck, and one that has gone."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from plugins.processes import pages
from plugins.processes.pages import SumOfServers
from service.telemetry.metrics import Metrics


@contextmanager
def answering(listening: socket.socket, metrics: Metrics) -> Iterator[None]:
    """A server's event loop, on a thread."""
    ready, end = threading.Event(), threading.Event()

    async def run() -> None:
        async with pages.answering(listening, metrics.registry):
            ready.set()
            await asyncio.to_thread(end.wait)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    ready.wait()
    yield
    end.set()
    thread.join()


@pytest.fixture
def sockets() -> Iterator[list[socket.socket]]:
    made = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for one in made:
        one.bind("")
        one.listen()
    yield made
    for one in made:
        one.close()


def values(servers: SumOfServers) -> dict[str, float]:
    return {sample.name: sample.value for metric in servers.collect() for sample in metric.samples}


def test_the_sum_is_of_those_that_answer(sockets: list[socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics()
    metrics.log_lines_dropped_total.inc()
    servers = SumOfServers([one.getsockname() for one in sockets])
    with answering(sockets[0].dup(), metrics), answering(sockets[1].dup(), Metrics()):
        found = values(servers)
        assert (found["dragoman_processes"], found["dragoman_log_lines_dropped_total"]) == (2, 1)
    monkeypatch.setattr(pages, "_PATIENCE_S", 1.0)
    with answering(sockets[1].dup(), Metrics()):  # the first has ended, and its socket is still there
        found = values(servers)
        assert (found["dragoman_processes"], found["dragoman_log_lines_dropped_total"]) == (1, 1)
    for one in sockets:
        one.close()
    found = values(servers)
    assert "dragoman_processes" not in found
    assert found["dragoman_log_lines_dropped_total"] == 1
