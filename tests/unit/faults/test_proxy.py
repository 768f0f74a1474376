import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.faults.proxy import Proxy
from tests.waiting import until


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(30)
        yield listener


@pytest.fixture
def proxy(listener: socket.socket) -> Iterator[Proxy]:
    with Proxy(f"127.0.0.1:{listener.getsockname()[1]}") as proxy:
        yield proxy


def ends(proxy: Proxy, listener: socket.socket) -> tuple[socket.socket, socket.socket]:
    host, port = proxy.address.split(":")
    client = socket.create_connection((host, int(port)), timeout=30)
    server, _ = listener.accept()
    server.settimeout(30)
    return client, server


def test_passes_on_both_ways_until_it_is_frozen(proxy, listener) -> None:
    client, server = ends(proxy, listener)
    with closing(client), closing(server):
        client.sendall(b"there")
        assert server.recv(9) == b"there"
        server.sendall(b"back")
        assert client.recv(9) == b"back"
        proxy.freeze()
        client.sendall(b"held")
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.recv(9)
        assert proxy.established() == 1
        server.settimeout(30)
        proxy.go_on()
        assert server.recv(9) == b"held"


def test_sees_that_the_server_has_left_a_frozen_connection(proxy, listener) -> None:
    client, server = ends(proxy, listener)
    with closing(client):
        proxy.freeze()
        server.close()
        until(lambda: proxy.established() == 0, "the end is seen", 30)


def test_resets_both_sides(proxy, listener) -> None:
    client, server = ends(proxy, listener)
    with closing(client), closing(server):
        client.sendall(b"there")
        assert server.recv(9) == b"there"
        assert proxy.reset() == 1
        for side in (client, server):
            with pytest.raises(ConnectionResetError):
                side.recv(9)
