"""The last moment of a listening socket."""

import socket
from collections.abc import Iterator

import pytest

from plugins.http.connection_filter import drop_requests


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield one


def test_the_kernel_makes_no_connection_any_more(listening: socket.socket) -> None:
    drop_requests(listening)
    with socket.socket() as late:
        late.settimeout(0.2)
        with pytest.raises(TimeoutError):
            late.connect(listening.getsockname())


def test_a_waiting_connection_stays(listening: socket.socket) -> None:
    with socket.create_connection(listening.getsockname()) as caller:
        drop_requests(listening)
        accepted, _ = listening.accept()
        with accepted:
            caller.sendall(b"call")
            assert accepted.recv(4) == b"call"
            accepted.sendall(b"answer")
            assert caller.recv(6) == b"answer"
