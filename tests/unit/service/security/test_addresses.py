import socket

import pytest

from dragoman.address import Address
from service.security.addresses import bound


def test_a_port_is_shared_by_those_that_agree_to_it_alone() -> None:
    [first] = bound(Address("127.0.0.1", 0), "--address", shared=True)
    address = Address("127.0.0.1", first.getsockname()[1])
    first.listen()
    try:
        with pytest.raises(OSError, match=f"cannot listen on {address} \\(--address\\): .*in use"):
            bound(address, "--address")
        [second] = bound(address, "--address", shared=True)
        second.close()
    finally:
        first.close()


def test_all_places_of_a_host_have_one_port() -> None:
    sockets = bound(Address("localhost", 0), "--address")
    assert len({one.getsockname()[1] for one in sockets}) == 1
    for one in sockets:
        one.close()


def test_a_host_that_is_not_here_is_refused() -> None:
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1:0 \(--http-address\): "):
        bound(Address("192.0.2.1", 0), "--http-address")


def test_a_taken_place_leaves_no_socket_open() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(OSError, match="in use"):
            bound(Address("localhost", other.getsockname()[1]), "--address")
