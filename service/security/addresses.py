"""Addresses that the server listens on: their sockets, and a warning where other machines reach them unguarded."""

import errno
import ipaddress
import socket
from typing import Any

import structlog

from dragoman.address import Address

_log = structlog.get_logger()


def cannot_listen(address: Address, flag: str, error: OSError) -> OSError:
    """Make an error that names the address, and the flag that gives it."""
    return OSError(f"cannot listen on {address} ({flag}): {error.strerror or error}")


def _places(address: Address) -> list[Any]:
    """Look up the addresses of the host as `socket.getaddrinfo` gives them; raises OSError for an unknown host."""
    return socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)


def bound(address: Address, flag: str, *, shared: bool = False) -> list[socket.socket]:
    """Bind a socket to each address of the host that this machine has, all with one port.

    Args:
        address: port 0: any free port.
        flag: the flag that gives the address, for errors.
        shared: other sockets of this user may have the port too, as long as they are shared as well.

    Raises:
        OSError: this machine has no such address, or one is taken.
    """
    sockets: list[socket.socket] = []
    failure: OSError | None = None
    try:
        places = _places(address)
    except OSError as error:
        raise cannot_listen(address, flag, error) from error
    for family, kind, protocol, _, place in places:
        one = socket.socket(family, kind, protocol)
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            port = sockets[0].getsockname()[1] if sockets else place[1]
            one.bind((place[0], port, *place[2:]))
            sockets.append(one)
        except OSError as error:
            one.close()
            failure = error
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                break
    else:
        if sockets:
            return sockets
    for one in sockets:
        one.close()
    assert failure is not None
    raise cannot_listen(address, flag, failure) from failure


def warn(address: Address, *, has_tls: bool, asks_for_keys: bool) -> None:
    """Warn of an address that is open to other machines without TLS or keys."""
    hosts = (str(place[0]).partition("%")[0] for *_, place in _places(address))
    if all(ipaddress.ip_address(host).is_loopback for host in hosts):
        return
    if not has_tls:
        _log.warning(f"{address} is open to other machines without TLS: texts and keys can be read on their way")
    if not asks_for_keys:
        _log.warning(f"{address} is open to other machines without API keys: everyone who reaches it can use it")
