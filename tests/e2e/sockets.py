"""Connections that tests write to and read from byte by byte."""

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


def read_until_closed(connection: socket.socket) -> bytes:
    """Gives what the peer says before it closes the connection; fails if it does not."""
    said = b""
    try:
        while part := connection.recv(65536):
            said += part
    except ConnectionError:
        pass
    return said


@contextmanager
def going_silent(connect: Callable[[], socket.socket], beginnings: Iterable[bytes], times: int) -> Iterator[None]:
    """Begins to send on several connections for each beginning; at the end of the block the peer must close all."""
    connections = []
    for sent in beginnings:
        for _ in range(times):
            connections.append(connect())
            connections[-1].sendall(sent)
    yield
    for connection in connections:
        read_until_closed(connection)
        connection.close()
