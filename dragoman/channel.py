"""The settings of a client's connections: which server is meant, how often gRPC tries again, how much it takes."""

from __future__ import annotations

import json
import os
from typing import Any, Final

from dragoman.access import API_KEY_VARIABLE

ADDRESS_VARIABLE: Final = "DRAGOMAN_SERVER"  # DRAGOMAN_ADDRESS says where a server listens, such as 0.0.0.0
DEFAULT_ADDRESS: Final = "127.0.0.1:50051"
DEFAULT_RETRIES: Final = 3
# gRPC makes at most five attempts, whatever it is told.
MOST_RETRIES: Final = 4


def address_of(given: str | None) -> str:
    """Say which server is meant: the given address, else that of the environment, else the local one."""
    return given or os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS


def api_key_of(given: str | None) -> str | None:
    """Say which key to send: the given one, else that of the environment; None: none.

    Raises:
        ValueError: no header can hold the key.
    """
    key = os.environ.get(API_KEY_VARIABLE) if given is None else given
    if key and not (key.isascii() and key.isprintable()):
        raise ValueError(f"api_key (or {API_KEY_VARIABLE}) must be printable ASCII")
    return key or None


def channel_options(retries: int) -> list[tuple[str, Any]]:
    """Build the options of a gRPC channel.

    Args:
        retries: how often gRPC makes a call again where the server is unavailable, from 0 to 4.

    Raises:
        ValueError: `retries` is out of its bounds.
    """
    if retries not in range(MOST_RETRIES + 1):
        raise ValueError(f"retries must be 0 to {MOST_RETRIES}, is {retries!r}")
    config: dict[str, Any] = {"loadBalancingConfig": [{"round_robin": {}}]}
    if retries:
        config["methodConfig"] = [_retried(retries)]
    return [
        ("grpc.service_config", json.dumps(config)),
        # A server may be set to send larger messages than gRPC's own 4 MiB.
        ("grpc.max_receive_message_length", -1),
        # gRPC's own 120 s would leave a server unused for so long after it came back from an outage.
        ("grpc.max_reconnect_backoff_ms", 5_000),
    ]


def _retried(retries: int) -> dict[str, Any]:
    """Configure the methods that gRPC calls again by itself."""
    return {
        # Not the stream: gRPC has been seen to wait for ever where the server of a retried stream died.
        "name": [
            {"service": "dragoman.v1.Translation", "method": "TranslateText"},
            {"service": "dragoman.v1.Translation", "method": "ScoreText"},
            {"service": "dragoman.v1.Translation", "method": "DetectLanguage"},
            {"service": "dragoman.v1.Translation", "method": "ListModels"},
            {"service": "dragoman.v1.Translation", "method": "ListGlossaries"},
        ],
        # Overload is not among the statuses (it is RESOURCE_EXHAUSTED), so retries cannot feed it. gRPC
        # jitters each pause, so that clients do not come back in step.
        "retryPolicy": {
            "maxAttempts": retries + 1,
            "initialBackoff": "0.1s",
            "maxBackoff": "1s",
            "backoffMultiplier": 3,
            # gRPC answers CANCELLED to a call that arrives as a server stops (grpc/grpc#41785); what the caller
            # itself cancels is not tried again.
            "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"],
        },
    }
