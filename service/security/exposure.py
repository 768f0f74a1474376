"""Addresses that are listened on: what they stand for, and a warning where others reach them unguarded."""

import ipaddress
import socket
from typing import Any

import structlog

from dragoman.address import Address

_log = structlog.get_logger()


def cannot_listen(address: Address, error: OSError) -> OSError:
    """Make an error that names the address."""
    return OSError(f"cannot listen on {address}: {error.strerror or error}")


def places(address: Address) -> list[Any]:
    """Look up what the host stands for.

    Returns:
        As `socket.getaddrinfo`.

    Raises:
        OSError: the host is unknown.
    """
    try:
        return socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise cannot_listen(address, error) from error


def warn(address: Address, *, has_tls: bool, asks_for_keys: bool) -> None:
    """Say what is open to other machines."""
    hosts = (str(place[0]).partition("%")[0] for *_, place in places(address))
    if all(ipaddress.ip_address(host).is_loopback for host in hosts):
        return
    if not has_tls:
        _log.warning(f"{address} is open to other machines without TLS: texts and keys can be read on their way")
    if not asks_for_keys:
        _log.warning(f"{address} is open to other machines without API keys: everyone who reaches it can use it")
