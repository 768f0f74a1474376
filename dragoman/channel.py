"""The connection of a client: the server's address, the options of the channel, and the causes of a failure."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, Final

from dragoman.access import API_KEY_VARIABLE
from dragoman.address import check_target
from dragoman.errors import DragomanError, ServerUnavailableError

ADDRESS_VARIABLE: Final = "DRAGOMAN_SERVER"  # DRAGOMAN_ADDRESS is where a server listens, such as 0.0.0.0
DEFAULT_ADDRESS: Final = "127.0.0.1:50051"
DEFAULT_RETRIES: Final = 3
_SCHEMES: Final = ("http://", "https://")
# Parts of gRPC's messages for a failed connection.
_NO_CONNECTION: Final = ("connect to all addresses", "connections to all backends", "resolving")
_NO_NAME: Final = ("DNS", "resolving", "lookup")
_NO_TLS: Final = ("handshake", "certificate", "ssl_error", "peer name")
_NO_GRPC: Final = ("as the first frame", "selected ALPN")
_GRPC_PORT: Final = f"gRPC has another one, such as {DEFAULT_ADDRESS}"
_BROKEN: Final = ("Socket closed", "recvmsg", "sendmsg", "Broken pipe", "GOAWAY")
_OTHER_HOST: Final = ("Hostname Verification Check failed", "is not in peer certificate")
NO_TLS: Final = "TLS could not be agreed on"
_METADATA_KEY: Final = re.compile("[a-z0-9_.-]+")


def address_of(given: str | None) -> str:
    """Choose the server's address: the given one, else that of the environment, else the local one.

    Raises:
        TypeError: the address is no str.
        ValueError: the address is neither `host:port` nor another target of gRPC.
    """
    if not isinstance(given, str | None):
        raise TypeError(f"address: must be str, is {type(given).__name__}")
    address = (os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS) if given is None else given
    if address.startswith(_SCHEMES):
        raise ValueError(f"address (or {ADDRESS_VARIABLE}) must be host:port of gRPC, not a URL, is {address!r}")
    try:
        check_target(address)
    except ValueError as error:
        raise ValueError(f"address (or {ADDRESS_VARIABLE}) {error}, is {address!r}") from None
    return address


def api_key_of(given: str | None) -> str | None:
    """Choose the API key: the given one, else that of the environment; None: no key.

    Raises:
        TypeError: the key is no str.
        ValueError: no header can hold the key.
    """
    if not isinstance(given, str | None):
        raise TypeError(f"api_key: must be str, is {type(given).__name__}")
    key = os.environ.get(API_KEY_VARIABLE) if given is None else given
    if key and not (key.isascii() and key.isprintable()):
        raise ValueError(f"api_key (or {API_KEY_VARIABLE}) must be printable ASCII")
    return key or None


def metadata_of(given: Mapping[str, str] | None) -> list[tuple[str, str]]:
    """List the metadata of every call; gRPC would report a wrong entry only in each call, as if the server were away.

    Raises:
        TypeError: it is no mapping, or a key or value is no str; the value of a key that ends with "-bin" may be bytes.
        ValueError: no header can have the key or hold the value.
    """
    if not isinstance(given, Mapping | None):
        raise TypeError(f"metadata: must be a mapping of str to str, is {type(given).__name__}")
    for key, value in (given or {}).items():
        if not isinstance(key, str):
            raise TypeError(f"metadata: a key must be str, is {type(key).__name__}")
        if not _METADATA_KEY.fullmatch(key):
            raise ValueError(f"metadata: a key must be of a-z, 0-9, -, _ and ., is {key!r}")
        is_binary = key.endswith("-bin")
        if not isinstance(value, str | bytes if is_binary else str):
            raise TypeError(f"metadata: {key} must be str, is {type(value).__name__}")
        if not (is_binary or (value.isascii() and value.isprintable())):
            raise ValueError(f"metadata: {key} must be printable ASCII")
    return [*(given or {}).items()]


def channel_options() -> list[tuple[str, Any]]:
    """Build the options of a gRPC channel."""
    return [
        ("grpc.service_config", json.dumps({"loadBalancingConfig": [{"round_robin": {}}]})),
        # A server may be configured to send messages larger than gRPC's default of 4 MiB.
        ("grpc.max_receive_message_length", -1),
        # gRPC's default of 120 s would leave a server unused for that time after an outage.
        ("grpc.max_reconnect_backoff_ms", 5_000),
        # Else an earlier client that failed to connect has a new one fail, without a try, for seconds.
        ("grpc.use_local_subchannel_pool", 1),
    ]


def in_words(error: DragomanError, address: str) -> DragomanError:
    """Explain a failed connection in plain words; any other error is returned unchanged.

    Args:
        error: the error of a call.
        address: the address of the server.
    """
    details = error.message
    if type(error) is not ServerUnavailableError or error.request_id:
        return error
    if _has(details, _NO_GRPC):
        return ServerUnavailableError(f"{address} does not speak gRPC: is it the HTTP port of a server? {_GRPC_PORT}")
    if _has(details, _NO_CONNECTION):
        return ServerUnavailableError(f"no server answers at {address}{_why(details)}")
    if _has(details, _BROKEN):
        return ServerUnavailableError(f"the connection to {address} broke: {details}")
    return error


def _why(details: str) -> str:
    """Give the cause, if the user can correct it."""
    if _has(details, _NO_NAME):
        return ": the host has no address"
    if _has(details, _OTHER_HOST):
        return ": its certificate is not for this host"
    if _has(details.lower(), _NO_TLS):  # gRPC writes "Handshake" and "handshake"
        return f": {NO_TLS}"
    closed = ": it closed the connection (does it want TLS, or a client certificate?)"
    return closed if _has(details, _BROKEN) else ""


def _has(details: str, signs: tuple[str, ...]) -> bool:
    return any(sign in details for sign in signs)
