"""Clients of the HTTP port that are slow, silent, enormous or malformed: each is answered or dropped, and nobody else
notices.

The times of the port are shortened here, so that the tests need not wait as long as a real client would.
"""

import json
import resource
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.certificates import Authority, Files
from tests.e2e.http_client import call
from tests.e2e.sockets import going_silent, read_until_closed
from tests.server_process import PATIENCE_S, ServerProcess
from tests.waiting import until

MAX_CONNECTIONS = 40
IMPATIENT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from plugins.http import body, connection, connections
connection.HEAD_TIMEOUT_S = connection.UNREAD_TIMEOUT_S = 2.0
connections.HANDSHAKE_TIMEOUT_S = connections.IDLE_TIMEOUT_S = body.ARRIVAL_TIMEOUT_S = 2.0
from dragoman.cli import main
sys.exit(main())
"""
HEAD = b"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
GOOD = json.dumps({"contents": ["Good morning."], "model": "en-de"}).encode()
LENGTH = b"content-length: %d\r\n\r\n"
OPEN = ("01", "08")  # established, and left by the client
CHUNKED = b"transfer-encoding: chunked\r\n\r\n"

HOLD_UPS = {
    "nothing": b"",
    "half a request line": b"POST /v1/tra",
    "half a header": HEAD + b"content-le",
    "no body": HEAD + LENGTH % len(GOOD),
    "half a body": HEAD + LENGTH % len(GOOD) + GOOD[:20],
    "half a chunk": HEAD + CHUNKED + b"40\r\n" + GOOD[:20],
    "no last chunk": HEAD + CHUNKED + b"%x\r\n" % len(GOOD) + GOOD + b"\r\n",
    "an answered request and half of the next": HEAD + LENGTH % len(GOOD) + GOOD + HEAD[:30],
    "an early answer and no body": HEAD.replace(b"json", b"xml") + LENGTH % len(GOOD),
    "no next request": b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "noise": bytes(range(256)),
}

# What is sent as one request, and the status that it gets.
MALFORMED = {
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200), 400),
    "another version": (b"GET /health HTTP/9.9\r\nhost: localhost\r\n\r\n", 400),
    "no method": (b"BREW /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n", 400),
    "wrong method": (b"DELETE /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n", 405),
    "wrong path": (b"GET /v1/../../etc/passwd HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
    "a path that ends with a slash": (b"GET /health/ HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
    "a path of another server": (b"GET http://evil.example/health/ HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
    "no path": (b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
    "a path that is no UTF-8": (b"GET /%ff%fe HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
    "a path of NULs": (b"GET /%00 HTTP/1.1\r\nhost: localhost\r\n\r\n", 404),
    "two lengths": (HEAD + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello", 400),
    "a length and chunks": (HEAD + b"content-length: 5\r\n" + CHUNKED + b"0\r\n\r\n", 400),
    "a length that is no number": (HEAD + b"content-length: ten\r\n\r\n", 400),
    "a negative length": (HEAD + b"content-length: -1\r\n\r\n", 400),
    "a length beyond all": (HEAD + b"content-length: %d\r\n\r\n" % 10**30, 400),
    "a length beyond the limit": (HEAD + b"content-length: 99999999999\r\n\r\n", 400),
    "no length": (HEAD + b"\r\n", 400),
    "a chunk without a size": (HEAD + CHUNKED + b"xyz\r\n", 400),
    "an obsolete line of a header": (HEAD + b"x: a\r\n b\r\n" + LENGTH % 0, 400),
    "a header without a name": (HEAD + b": a\r\n" + LENGTH % 0, 400),
    "a NUL in a header": (HEAD + b"x: a\0b\r\n" + LENGTH % 0, 400),
    "a long path": (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n", 431),
    "a long header": (HEAD + b"x-large: " + b"a" * 20_000 + b"\r\n" + LENGTH % 0, 431),
    "many headers": (HEAD + b"".join(b"x-%d: a\r\n" % number for number in range(4_000)) + LENGTH % 0, 431),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET /health HTTP/1.1\r\nhost: localhost\r\nHost: localhost\r\n\r\n", 400),
    "a host that is not this machine": (b"GET /v1/models HTTP/1.1\r\nhost: evil.example\r\n\r\n", 403),
    "a page of another site": (HEAD + b"sec-fetch-site: cross-site\r\nconnection: close\r\n" + LENGTH % 0, 403),
    "a compressed body": (HEAD + b"content-encoding: gzip\r\n" + LENGTH % 3 + b"abc", 400),
    "a compressed transfer": (HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "a compressed transfer in two headers": (HEAD + b"transfer-encoding: gzip\r\n" + CHUNKED + b"0\r\n\r\n", 501),
    "another type of content": (HEAD.replace(b"json", b"xml") + LENGTH % 0, 400),
}

BODIES = {
    "nothing": b"",
    "no JSON": b"hello",
    "cut": GOOD[:-1],
    "more": GOOD + b"}",
    "a list": b"[]",
    "null": b"null",
    "a number": b"5",
    "no UTF-8": b'{"contents": ["\xff"]}',
    "half a surrogate pair": b'{"contents": ["\\ud800"], "model": "en-de"}',
    "UTF-16": GOOD.decode().encode("utf-16"),
    "a mark of bytes": b"\xef\xbb\xbf" + GOOD,
    "NaN": b'{"contents": ["a"], "model": "en-de", "options": {"lengthPenalty": NaN}}',
    "infinity": b'{"contents": ["a"], "model": "en-de", "options": {"lengthPenalty": -Infinity}}',
    "NaN as a string": b'{"contents": ["a"], "model": "en-de", "options": {"lengthPenalty": "NaN"}}',
    "a huge float": b'{"contents": ["a"], "options": {"lengthPenalty": 1e999}}',
    "a huge integer": b'{"options": {"beamSize": ' + b"9" * 4_000 + b"}}",
    "a number of 100,000 digits": b'{"options": {"beamSize": ' + b"9" * 100_000 + b"}}",
    "a fraction": b'{"options": {"beamSize": 1.5}}',
    "a negative number": b'{"options": {"beamSize": -1}}',
    "100,000 lists in lists": b"[" * 100_000,
    "100,000 objects in objects": b'{"options":' * 100_000,
    "300 objects in objects": b'{"options":' * 300 + b"{}" + b"}" * 300,
    "2,700,000 lists": b"[" + b"[]," * 2_700_000 + b"[]]",
    "2,700,000 texts": b'{"contents": [' + b'"",' * 2_700_000 + b'""]}',
    "a key twice": b'{"model": "en-de", "model": "de-en"}',
    "a field under both its names": b'{"request_id": "a", "requestId": "b"}',
    "an unknown field": b'{"content": ["a"]}',
    "an unknown field of a field": b'{"options": {"beams": 1}}',
    "a string for a list": b'{"contents": "a"}',
    "numbers for texts": b'{"contents": [1, 2]}',
    "null for a text": b'{"contents": [null]}',
    "a list for an object": b'{"options": []}',
    "an unknown name of an enum": b'{"priority": "FIRST"}',
    "a body beyond the limit": b'{"contents": ["' + b"a" * 8_400_000 + b'"]}',
}


class Target:
    """An impatient server, and raw connections to it."""

    def __init__(self) -> None:
        arguments = ("--http-address=127.0.0.1:0", f"--max-connections={MAX_CONNECTIONS}", "--max-host-connections=30")
        self.server = ServerProcess(arguments, program=("-c", IMPATIENT))
        self.server.wait_until_serving()
        self.must_serve()

    def connect(self) -> socket.socket:
        host, _, port = self.server.http_address.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=PATIENCE_S)

    def must_serve(self) -> None:
        answer = call(self.server, "POST", "/v1/translate", GOOD)
        assert answer.json["translations"][0]["translatedText"] == "Guten Morgen."

    def open_connections(self) -> int:
        """Counts the connections to the port that the server has not closed."""
        port = f":{int(self.server.http_address.rpartition(':')[2]):04X}"
        lines = Path(f"/proc/{self.server.process.pid}/net/tcp").read_text().splitlines()[1:]
        return sum(line.split()[1].endswith(port) and line.split()[3] in OPEN for line in lines)

    def wait_until_at_rest(self) -> None:
        until(lambda: not self.open_connections())
        for gauge in ("slots_active", "queue_segments", "queue_source_tokens"):
            assert self.server.metric(gauge) == 0


def read_object(connection: socket.socket) -> bytes:
    """Gives what the peer says up to the end of a JSON object, or before it closes the connection."""
    said = b""
    while not said.endswith(b"}") and (part := connection.recv(65536)):
        said += part
    return said


@pytest.fixture(scope="module")
def target(_bundle: None) -> Iterator[Target]:
    target = Target()
    try:
        yield target
        target.wait_until_at_rest()
        target.server.signal(signal.SIGTERM)
        assert target.server.exit_code() == 0
        assert not any("Traceback" in line or '"level": "error"' in line for line in target.server.log)
    finally:
        target.server.close()


def test_who_begins_and_goes_silent_is_dropped_and_others_are_served(target) -> None:
    with going_silent(target.connect, HOLD_UPS.values(), 2):
        target.must_serve()


def test_who_sends_byte_by_byte_does_not_win_time(target) -> None:
    with target.connect() as connection:
        give_up_s = time.monotonic() + PATIENCE_S
        try:
            for byte in HEAD + b"x: " + b"a" * 10_000:
                assert time.monotonic() < give_up_s
                connection.send(bytes([byte]))
                time.sleep(0.01)
        except ConnectionError:
            return
        pytest.fail("all of it was taken")


# Its answer is larger than what the sockets of both sides hold: JSON takes six bytes for each of these characters.
LARGE = {"contents": ["<p translate='no'>" + "\x01" * 1_000_000 + "</p>"], "model": "en-de", "mimeType": "text/html"}


@contextmanager
def unread(server: ServerProcess, path: str) -> Iterator[socket.socket]:
    """A connection whose client asks for a large answer, and reads no more than its beginning."""
    body = json.dumps(LARGE).encode()
    host, _, port = server.http_address.rpartition(":")
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE_S)
        connection.connect((host, int(port)))
        connection.sendall(HEAD.replace(b"/v1/translate", path.encode()) + LENGTH % len(body) + body)
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
        yield connection


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/translate:stream"])
def test_who_never_reads_the_answer_is_dropped_and_holds_no_slot(target, path: str) -> None:
    target.wait_until_at_rest()
    with unread(target.server, path):
        target.must_serve()
        assert target.open_connections()
        target.wait_until_at_rest()


def test_who_never_reads_the_answer_does_not_hold_up_the_end(serve) -> None:
    server = serve("--http-address=127.0.0.1:0", "--drain-timeout-s=0.1")
    with unread(server, "/v1/translate:stream"):
        server.signal(signal.SIGTERM)
        assert server.exit_code() == 0
        assert not any("Traceback" in line for line in server.log)


@pytest.mark.parametrize("sent", MALFORMED)
def test_what_is_no_request_has_one_clear_error(target, sent: str) -> None:
    data, status = MALFORMED[sent]
    with target.connect() as connection:
        connection.sendall(data)
        said = read_object(connection)
        with suppress(OSError):  # it may have closed the connection
            connection.shutdown(socket.SHUT_WR)  # else it waits for the next request
        said += read_until_closed(connection)
    head, _, body = said.partition(b"\r\n\r\n")
    assert int(head.split()[1]) == status
    assert json.loads(body)["error"]["message"]
    assert said.count(b"HTTP/1.1 ") == 1
    target.must_serve()


def ask_health(connection: socket.socket) -> bool:
    connection.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
    return b"200 OK" in read_object(connection)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        *(("/v1/translate", sent) for sent in BODIES),
        ("/v1/translate:stream", "no JSON"),
        ("/v1/translate:stream", "a body beyond the limit"),
        ("/dragoman.v1.Translation/TranslateText", "no JSON"),
        ("/v1/score", "an unknown field"),
    ],
)
def test_a_body_that_is_no_message_has_one_clear_error(target, path: str, sent: str) -> None:
    answer = call(target.server, "POST", path, BODIES[sent])
    assert answer.status == 400
    error = answer.json.get("error", answer.json)
    assert 0 < len(error["message"]) < 500
    assert [detail for detail in error["details"] if detail.get("reason", "INVALID_REQUEST") == "INVALID_REQUEST"]
    target.must_serve()


VALID = [
    HEAD + LENGTH % len(GOOD) + GOOD,
    HEAD + CHUNKED + b"%x\r\n" % len(GOOD) + GOOD + b"\r\n0\r\n\r\n",
    HEAD.replace(b"/v1/translate", b"/translate").replace(b"json", b"x-www-form-urlencoded") + LENGTH % 5 + b"q=a%20",
    HEAD.replace(b"/v1/translate", b"/v2/translate?text=a") + LENGTH % 20 + b'{"target_lang":"de"}',
    b"GET /v1/models?pageSize=1 HTTP/1.1\r\nhost: localhost\r\nconnection: keep-alive\r\n\r\n",
]
changes = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3), st.binary(max_size=5)), max_size=4)


def changed(request: bytes, places: list[tuple[int, int, bytes]]) -> bytes:
    """A request with some bytes replaced by others."""
    for place, length, by in places:
        request = request[:place] + by + request[place + length :]
    return request


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(VALID), changes, st.integers(0, 300))
def test_requests_with_odd_bytes_hurt_nobody(target, request_: bytes, places: list, cut: int) -> None:
    sent = changed(request_, places)
    with target.connect() as connection:
        connection.sendall(sent[: -cut or None] if cut < 50 else sent)
        connection.shutdown(socket.SHUT_WR)
        said = read_until_closed(connection)
    assert not said or said.startswith(b"HTTP/1.1 ")
    assert b"HTTP/1.1 5" not in said.replace(b"HTTP/1.1 501", b"")  # that is for another transfer-encoding


def test_requests_before_the_answer_to_the_last_are_not_read(target) -> None:
    with target.connect() as connection:
        connection.sendall((HEAD + LENGTH % len(GOOD) + GOOD) * 3)
        said = read_until_closed(connection)
    assert said.count(b"HTTP/1.1 200 OK") == 1
    assert b"connection: close" in said


def test_a_request_to_upgrade_is_answered_as_any_other(target) -> None:
    upgrade = b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n"
    with target.connect() as connection:
        whole = HEAD + upgrade + LENGTH % len(GOOD) + GOOD
        connection.sendall(whole[:-10])
        time.sleep(0.1)
        connection.sendall(whole[-10:])
        said = read_until_closed(connection)
    assert b"Guten Morgen." in said


def test_names_of_encodings_are_compared_without_case(target) -> None:
    chunks = b"%x\r\n" % len(GOOD) + GOOD + b"\r\n0\r\n\r\n"
    with target.connect() as connection:
        connection.sendall(HEAD + b"content-encoding: Identity\r\n" + CHUNKED.replace(b"chunked", b"Chunked") + chunks)
        assert b"Guten Morgen." in connection.recv(65536)


def test_an_answer_comes_whole(target) -> None:
    """A balancer that has passed on a head alone could give the call to no other server any more."""
    with target.connect() as connection:
        for _ in range(20):
            connection.sendall(HEAD + LENGTH % len(GOOD) + GOOD)
            assert connection.recv(65536).endswith(b"}")


def test_bodies_may_come_in_chunks_and_many_requests_over_one_connection(target) -> None:
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in GOOD) + b"0\r\n\r\n"
    with target.connect() as connection:
        for _ in range(20):
            connection.sendall(HEAD + CHUNKED + chunks)
            said = b""
            while not said.endswith(b"}"):
                said += connection.recv(65536)
            assert b"Guten Morgen." in said


def test_there_are_descriptors_for_all_connections_of_both_ports(target) -> None:
    soft, hard = resource.prlimit(target.server.process.pid, resource.RLIMIT_NOFILE)
    assert soft == min(hard, 64 + 2 * MAX_CONNECTIONS)


def test_connections_are_bounded_and_those_there_are_go_on(target) -> None:
    with target.connect() as kept:
        assert ask_health(kept)
        crowd = [target.connect() for _ in range(MAX_CONNECTIONS + 20)]
        assert ask_health(kept)
        assert 0 < target.open_connections() <= 31
        for connection in crowd:
            read_until_closed(connection)
            connection.close()
    assert target.server.metric("closed_connections_total", reason="HOST_LIMIT") > 0
    target.must_serve()


def test_a_tls_handshake_that_stalls_is_dropped(serve, tmp_path: Path) -> None:
    authority, files = Authority(), Files(tmp_path)
    files.write(authority.issue())
    tls = (f"--tls-certificate={files.certificate}", f"--tls-key={files.key}")
    server = serve("--http-address=127.0.0.1:0", *tls, program=("-c", IMPATIENT))
    outgoing = ssl.MemoryBIO()
    handshake = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        handshake.do_handshake()
    hello = outgoing.read()
    host, _, port = server.http_address.rpartition(":")
    connections = [socket.create_connection((host, int(port)), timeout=PATIENCE_S) for _ in range(8)]
    for connection, part in zip(connections, [b"", hello[:20], hello, HEAD] * 2, strict=True):
        connection.sendall(part)
    for connection in connections:
        read_until_closed(connection)
        connection.close()
    context = ssl.create_default_context(cadata=authority.pem.decode())
    with context.wrap_socket(socket.create_connection((host, int(port))), server_hostname="localhost") as connection:
        assert ask_health(connection)
