"""Real connections from several addresses of the loopback network to a port of this process."""

import socket
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from plugins.sockets.host_connections import HostConnections
from service.telemetry.metrics import Metrics

LIMIT = 3
PATIENCE_S = 60.0


class Port:
    """A port that accepts, and both ends of its connections."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.number = self.listener.getsockname()[1]
        self.ends: list[socket.socket] = []

    def connect(self, host: str) -> socket.socket:
        """Connects from an address; gives the caller's end."""
        caller = socket.create_connection(("127.0.0.1", self.number), PATIENCE_S, source_address=(host, 0))
        self.ends += [caller, self.listener.accept()[0]]
        return caller

    def close(self) -> None:
        for end in (*self.ends, self.listener):
            end.close()


@pytest.fixture
def port() -> Iterator[Port]:
    port = Port()
    yield port
    port.close()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def connections(port: Port, metrics: Metrics) -> HostConnections:
    return HostConnections(port.number, LIMIT, metrics)


def is_open(caller: socket.socket) -> bool:
    caller.setblocking(False)
    try:
        return caller.recv(1) != b""
    except BlockingIOError:
        return True


def test_the_newest_of_a_host_are_closed_and_no_others(port: Port, metrics: Metrics, connections) -> None:
    old = [port.connect("127.0.0.2") for _ in range(LIMIT)]
    others = [port.connect("127.0.0.3") for _ in range(LIMIT)]
    connections.look()
    assert all(map(is_open, [*old, *others]))
    new = [port.connect("127.0.0.2") for _ in range(2)]
    with capture_logs() as log:
        connections.look()
    assert all(map(is_open, [*old, *others]))
    assert not any(map(is_open, new))
    assert metrics.total("closed_connections_total", reason="HOST_LIMIT") == 2
    [line] = log
    assert (line["log_level"], line["hosts"], line["max_host_connections"]) == ("warning", {"127.0.0.2": 5}, LIMIT)


def test_what_was_closed_is_closed_once_and_told_once_in_a_while(port: Port, metrics: Metrics, connections) -> None:
    callers = [port.connect("127.0.0.2") for _ in range(LIMIT + 1)]
    with capture_logs() as log:
        for _ in range(3):
            connections.look()
        callers.append(port.connect("127.0.0.2"))
        connections.look()
    assert metrics.total("closed_connections_total") == 2
    assert [is_open(caller) for caller in callers] == [True] * LIMIT + [False] * 2
    assert len(log) == 1


def test_a_place_that_is_left_can_be_taken(port: Port, metrics: Metrics, connections) -> None:
    callers = [port.connect("127.0.0.2") for _ in range(LIMIT)]
    connections.look()
    for end in port.ends[:2]:
        end.close()
    callers.append(port.connect("127.0.0.2"))
    connections.look()
    assert all(map(is_open, callers[1:]))
    assert metrics.total("closed_connections_total") == 0


def test_connections_to_other_ports_do_not_count(port: Port, metrics: Metrics) -> None:
    other = Port()
    try:
        callers = [other.connect("127.0.0.2") for _ in range(2 * LIMIT)]
        HostConnections(port.number, LIMIT, metrics).look()
        assert all(map(is_open, callers))
    finally:
        other.close()
