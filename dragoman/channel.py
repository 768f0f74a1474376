"""The connections of a client: which server is meant, how much they take, and why there is none."""

from __future__ import annotations

import json
import os
from typing import Any, Final

from dragoman.access import API_KEY_VARIABLE
from dragoman.address import check_target
from dragoman.errors import DragomanError, ServerUnavailableError

ADDRESS_VARIABLE: Final = "DRAGOMAN_SERVER"  # DRAGOMAN_ADDRESS says where a server listens, such as 0.0.0.0
DEFAULT_ADDRESS: Final = "127.0.0.1:50051"
DEFAULT_RETRIES: Final = 3
_SCHEMES: Final = ("http://", "https://")
# In gRPC's account of a failed connection.
_NO_CONNECTION: Final = ("connect to all addresses", "connections to all backends", "resolving")
_NO_NAME: Final = ("DNS", "resolving", "lookup")
_NO_TLS: Final = ("handshake", "certificate", "SSL_ERROR", "Peer name")
_NO_GRPC: Final = "as the first frame"
_GRPC_PORT: Final = f"gRPC has another one, such as {DEFAULT_ADDRESS}"
_BROKEN: Final = ("Socket closed", "recvmsg", "sendmsg", "Broken pipe", "GOAWAY")
NO_TLS: Final = "TLS could not be agreed on"


def address_of(given: str | None) -> str:
    """Say which server is meant: the given address, else that of the environment, else the local one.

    Raises:
        TypeError: it is no str.
        ValueError: it is neither `host:port` nor another target of gRPC.
    """
    if not isinstance(given, str | None):
        raise TypeError(f"address: must be str, is {type(given).__name__}")
    address = given or os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS
    if address.startswith(_SCHEMES):
        raise ValueError(f"address (or {ADDRESS_VARIABLE}) must be host:port of gRPC, not a URL, is {address!r}")
    try:
        check_target(address)
    except ValueError as error:
        raise ValueError(f"address (or {ADDRESS_VARIABLE}) {error}, is {address!r}") from None
    return address


def api_key_of(given: str | None) -> str | None:
    """Say which key to send: the given one, else that of the environment; None: none.

    Raises:
        TypeError: it is no str.
        ValueError: no header can hold the key.
    """
    if not isinstance(given, str | None):
        raise TypeError(f"api_key: must be str, is {type(given).__name__}")
    key = os.environ.get(API_KEY_VARIABLE) if given is None else given
    if key and not (key.isascii() and key.isprintable()):
        raise ValueError(f"api_key (or {API_KEY_VARIABLE}) must be printable ASCII")
    return key or None


def channel_options() -> list[tuple[str, Any]]:
    """Build the options of a gRPC channel."""
    return [
        ("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),
        # A server may be set to send larger messages than gRPC's own 4 MiB.
        ("grpc.max_receive_message_length", -1),
        # gRPC's own 120 s would leave a server unused for so long after it came back from an outage.
        ("grpc.max_reconnect_backoff_ms", 5_000),
    ]


def in_words(error: DragomanError, address: str) -> DragomanError:
    """Put into words what gRPC says of a connection that failed; any other error stays as it is.

    Args:
        error: of a call.
        address: of the server.
    """
    details = error.message
    if type(error) is not ServerUnavailableError or error.request_id:
        return error
    if _NO_GRPC in details:
        return ServerUnavailableError(f"{address} does not speak gRPC: is it the HTTP port of a server? {_GRPC_PORT}")
    if _has(details, _NO_CONNECTION):
        return ServerUnavailableError(f"no server answers at {address}{_why(details)}")
    if _has(details, _BROKEN):
        return ServerUnavailableError(f"the connection to {address} broke: {details}")
    return error


def _why(details: str) -> str:
    """Say what a user can put right."""
    if _has(details, _NO_NAME):
        return ": the host has no address"
    return f": {NO_TLS}" if _has(details, _NO_TLS) else ""


def _has(details: str, signs: tuple[str, ...]) -> bool:
    return any(sign in details for sign in signs)
