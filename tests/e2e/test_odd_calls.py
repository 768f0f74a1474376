"""No call stops a real server from accepting others, however odd its path and its headers are."""

import json
from collections.abc import Iterator

import pytest

from dragoman import Client
from tests.http2 import Connection, End, call_headers
from tests.server_process import PATIENCE_S, ServerProcess, serving

UNIMPLEMENTED = End(status="12", reset=None, closed=False)
UNKNOWN = UNIMPLEMENTED._replace(status="2")
ODD_PATHS = {
    "not UTF-8": b"/\xff",
    "not UTF-8, of our service": b"/dragoman.v1.Translation/\xff",
    "half a character": b"/dragoman.v1.Translation/TranslateText\xe4\xbd",
    "empty": b"",
    "no slash": b"TranslateText",
    "NUL": b"/\0",
    "a line of its own": b"/a\r\nx-api-key: b",
    "almost 16 KiB": b"/" + b"a" * 16_000,
    "unknown method": b"/dragoman.v1.Translation/Translate",
    "unknown service": b"/grpc.reflection.v9.ServerReflection/ServerReflectionInfo",
}
ODD_HEADERS = {
    "no path": call_headers(path=None),
    "two paths": [*call_headers(), (b":path", b"/\xff")],
    "64 KiB of path": call_headers(path=b"/" + b"a" * 65_000),
    "no authority": call_headers(authority=None),
    "authority not UTF-8": call_headers(authority=b"\xff\xfe"),
    "no method": call_headers(method=None),
    "method not UTF-8": call_headers(method=b"\xff"),
    "two methods": [*call_headers(), (b":method", b"GET")],
    "scheme not UTF-8": call_headers(scheme=b"\xff"),
    "te not UTF-8": call_headers(te=b"\xff"),
    "a pseudo-header that nobody knows": [*call_headers(), (b":foo", b"\xff")],
    "a pseudo-header of answers": [*call_headers(), (b":status", b"200")],
    "no headers at all": [],
    "metadata not UTF-8": [*call_headers(), (b"x-a", b"\xff\xfe")],
    "metadata's name not UTF-8": [*call_headers(), (b"x-\xff", b"a")],
    "metadata without a name": [*call_headers(), (b"", b"a")],
    "metadata in capitals": [*call_headers(), (b"X-A", b"a")],
    "bytes that are no base64": [*call_headers(), (b"a-bin", b"\xff!")],
    "a key not UTF-8": [*call_headers(), (b"authorization", b"Bearer \xff")],
    "a trace context not UTF-8": [*call_headers(), (b"traceparent", b"\xff")],
    "encoding not UTF-8": [*call_headers(), (b"grpc-encoding", b"\xff")],
    "encodings not UTF-8": [*call_headers(), (b"grpc-accept-encoding", b"\xff,,\xff")],
    "a deadline of ten thousand years": [*call_headers(), (b"grpc-timeout", b"99999999H")],
    "a deadline of 200 digits": [*call_headers(), (b"grpc-timeout", b"9" * 200 + b"H")],
    "a negative deadline": [*call_headers(), (b"grpc-timeout", b"-1S")],
    "a deadline that is over": [*call_headers(), (b"grpc-timeout", b"0n")],
    "a deadline not UTF-8": [*call_headers(), (b"grpc-timeout", b"\xff")],
}


def send(address: str, headers: list[tuple[bytes, bytes]]) -> End:
    """Makes a call with these headers over a connection of its own."""
    with Connection(address, PATIENCE_S) as connection:
        connection.begin(1, headers, ends=True)
        return connection.end_of(1)


def translate(address: str) -> None:
    """A call of a new client is answered, though gRPC has its clients share a pause after a connection that failed."""
    with Client(address, timeout_s=PATIENCE_S, retries=10) as client:
        assert client.translate("Good morning.", model="en-de").text == "Guten Morgen."


@pytest.fixture(scope="module")
def attacked(_bundle: None) -> Iterator[ServerProcess]:
    with serving() as server:
        yield server
    lines = [json.loads(line) for line in server.log]  # none of gRPC's own, which are no JSON
    assert not [line for line in lines if line["level"] == "error"]


@pytest.mark.parametrize("path", ODD_PATHS)
def test_a_method_that_does_not_exist_is_an_error_of_its_call_whatever_its_bytes(
    attacked: ServerProcess, path: str
) -> None:
    for _ in range(3):
        assert send(attacked.address, call_headers(path=ODD_PATHS[path])) in (UNIMPLEMENTED, UNKNOWN)
    translate(attacked.address)


@pytest.mark.parametrize("headers", ODD_HEADERS)
def test_odd_headers_end_their_call_and_nothing_else(attacked: ServerProcess, headers: str) -> None:
    for _ in range(3):
        send(attacked.address, ODD_HEADERS[headers])
    translate(attacked.address)


def test_calls_over_the_same_connection_go_on(attacked: ServerProcess) -> None:
    with Connection(attacked.address, PATIENCE_S) as connection:
        connection.begin(1, call_headers())
        connection.begin(3, call_headers(path=b"/\xff"), ends=True)
        assert connection.end_of(3) in (UNIMPLEMENTED, UNKNOWN)
        connection.message(1)
        assert connection.end_of(1).status == "0"
