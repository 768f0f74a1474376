"""Which server is meant, and what is said where there is none."""

import json
import re
from typing import Any

import pytest

from dragoman.access import API_KEY_VARIABLE
from dragoman.channel import (
    ADDRESS_VARIABLE,
    DEFAULT_ADDRESS,
    address_of,
    api_key_of,
    channel_options,
    in_words,
    metadata_of,
)
from dragoman.errors import DrainingError, InternalError, ServerUnavailableError


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (ADDRESS_VARIABLE, API_KEY_VARIABLE):
        monkeypatch.delenv(name, raising=False)


def test_the_given_address_wins_over_the_variable_over_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert address_of(None) == DEFAULT_ADDRESS
    monkeypatch.setenv(ADDRESS_VARIABLE, "there:1")
    assert (address_of(None), address_of("here:2")) == ("there:1", "here:2")


def test_the_given_key_wins_and_an_empty_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert api_key_of(None) is None
    monkeypatch.setenv(API_KEY_VARIABLE, "of the environment")
    assert (api_key_of(None), api_key_of("given"), api_key_of("")) == ("of the environment", "given", None)


@pytest.mark.parametrize("key", ["a\nb", "é", "\x7f"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII") as refused:
        api_key_of(key)
    assert key not in str(refused.value)


@pytest.mark.parametrize(
    ("metadata", "error", "said"),
    [
        ({"X-Y": "z"}, ValueError, "a key must be of a-z, 0-9, -, _ and ., is 'X-Y'"),
        ({"": "z"}, ValueError, "a key must be of a-z, 0-9, -, _ and ., is ''"),
        ({5: "z"}, TypeError, "a key must be str, is int"),
        ({"x": "ä"}, ValueError, "x must be printable ASCII"),
        ({"x": "a\nb"}, ValueError, "x must be printable ASCII"),
        ({"x": 5}, TypeError, "x must be str, is int"),
        ({"x": b"y"}, TypeError, "x must be str, is bytes"),
    ],
)
def test_metadata_that_no_header_can_hold_is_refused(metadata: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=f"^metadata: {re.escape(said)}$"):
        metadata_of(metadata)


def test_metadata_of_every_call() -> None:
    given: Any = {"x-y_z.1": "a b", "x-bin": b"\xff"}
    assert metadata_of(given) == [*given.items()]
    assert metadata_of(None) == []


def test_calls_are_spread_and_answers_may_be_of_any_size() -> None:
    options = dict(channel_options())
    assert json.loads(options["grpc.service_config"]) == {"loadBalancingConfig": [{"round_robin": {}}]}
    assert options["grpc.max_receive_message_length"] == -1


@pytest.mark.parametrize("address", ["http://127.0.0.1:8080", "https://there"])
def test_an_address_that_is_a_url_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="must be host:port of gRPC, not a URL, is 'http"):
        address_of(address)


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1:99999", "a b:1"])
def test_an_address_that_is_none_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = rf"^address \(or DRAGOMAN_SERVER\) must be host:port .*, is '{address}'$"
    with pytest.raises(ValueError, match=said):
        address_of(address)
    with pytest.raises(ValueError, match=r"must be host:port .*, is ''$"):
        address_of("")
    monkeypatch.setenv(ADDRESS_VARIABLE, address)
    with pytest.raises(ValueError, match=said):
        address_of(None)
    assert address_of("unix:/tmp/socket") == "unix:/tmp/socket"


NONE = "connections to all backends failing; last error: UNAVAILABLE: ipv4:127.0.0.1:1: "


@pytest.mark.parametrize(
    ("details", "said"),
    [
        (
            NONE + "Cannot check peer: missing selected ALPN property.",
            "there:1 does not speak gRPC: is it the HTTP port of a server? "
            f"gRPC has another one, such as {DEFAULT_ADDRESS}",
        ),
        (
            NONE + "Socket closed",
            "no server answers at there:1: it closed the connection (does it want TLS, or a client certificate?)",
        ),
        (
            NONE + "Handshake read failed (Socket closed)",
            "no server answers at there:1: TLS could not be agreed on",
        ),
        (
            NONE + "Custom verification check failed with error: UNAUTHENTICATED: Hostname Verification Check failed.",
            "no server answers at there:1: its certificate is not for this host",
        ),
        (
            NONE + "Peer name there is not in peer certificate",
            "no server answers at there:1: its certificate is not for this host",
        ),
        (NONE + "Failed to connect to remote host: Connection refused", "no server answers at there:1"),
        ("Socket closed", "the connection to there:1 broke: Socket closed"),
        ("no healthy upstream", "no healthy upstream"),  # a proxy's
    ],
)
def test_a_failed_connection_is_put_into_words(details: str, said: str) -> None:
    assert in_words(ServerUnavailableError(details), "there:1").message == said


def test_errors_of_a_server_stay_as_they_are() -> None:
    for error in (DrainingError("resolving"), InternalError("Socket closed")):
        assert in_words(error, "there:1") is error
