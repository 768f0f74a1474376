"""Clients that hold a real server up on purpose: they are dropped, or cost nothing, and nobody else notices.

The times of the listener are shortened here, so that the tests need not wait as long as a real client would. Sound
clients still have time to answer on a busy machine.
"""

import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from dragoman import Client
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.certificates import Authority, Files
from tests.e2e.sockets import going_silent, read_until_closed
from tests.server_process import PATIENCE_S, ServerProcess
from tests.waiting import until

MAX_CONNECTIONS = 40
LIMITS = (f"--max-connections={MAX_CONNECTIONS}", f"--max-host-connections={MAX_CONNECTIONS}")
IMPATIENT = """
import sys
from service.rpc import listener
listener.HANDSHAKE_TIMEOUT_S = 2.0
listener.IDLE_TIMEOUT_S = 2.0
listener.PING_PERIOD_S, listener.PING_TIMEOUT_S = 0.5, 2.0
from dragoman.cli import main
sys.exit(main())
"""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes.fromhex("000000040000000000")
PING = bytes.fromhex("000008060000000000") + bytes(8)
NO_WINDOW = bytes.fromhex("000006040000000000") + bytes.fromhex("000400000000")  # SETTINGS: send me nothing


def frame(kind: int, flags: int, content: bytes) -> bytes:
    """A frame of stream 1."""
    return len(content).to_bytes(3) + bytes([kind, flags]) + (1).to_bytes(4) + content


def headers(method: str) -> bytes:
    """What begins a call: HEADERS, neither compressed nor the end of the stream."""
    fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", f"/dragoman.v1.Translation/{method}"),
        (":authority", "dragoman"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ]
    block = b"".join(b"\x00" + bytes([len(n)]) + n.encode() + bytes([len(v)]) + v.encode() for n, v in fields)
    return frame(1, 4, block)


HEADERS = headers("TranslateText")
MESSAGE = bytes(1) + (1000).to_bytes(4)  # uncompressed, 1,000 bytes, which never come


def data(content: bytes, flags: int = 0) -> bytes:
    return frame(0, flags, content)


HOLD_UPS = {
    "nothing": b"",
    "half a preface": PREFACE[:10],
    "a preface": PREFACE,
    "no call": PREFACE + SETTINGS,
    "half a header": PREFACE + SETTINGS + HEADERS[:40],
    "no body": PREFACE + SETTINGS + HEADERS,
    "half a body": PREFACE + SETTINGS + HEADERS + data(MESSAGE + b"abc"),
    "a frame that never ends": PREFACE + SETTINGS + HEADERS + data(MESSAGE + bytes(900))[:50],
    "not HTTP/2": b"GET / HTTP/1.1\r\nHost: dragoman\r\n\r\n",
    "noise": bytes(range(256)),
}

# What gRPC opens and closes for itself, whoever calls.
OWN_DESCRIPTORS = 1


class ImpatientServer:
    """An impatient server, and what it has open."""

    def __init__(self, *arguments: str) -> None:
        self.server = ServerProcess((*LIMITS, *arguments), program=("-c", IMPATIENT))
        self.server.wait_until_serving()
        self.wait_until_at_rest()
        self.descriptors = self.open_descriptors()

    def connect(self) -> socket.socket:
        host, _, port = self.server.address.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=PATIENCE_S)

    def open_descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.server.process.pid}/fd"))

    def wait_until_at_rest(self) -> None:
        """Waits until no connection is left, and nothing of any call."""
        until(lambda: self.open_sockets() <= 2)  # it listens on two
        for gauge in ("slots_active", "queue_segments", "queue_source_tokens"):
            assert self.server.metric(gauge) == 0

    def open_sockets(self) -> int:
        """Counts the sockets with an address that is ours or a peer's."""
        pid = self.server.process.pid
        inodes = set()
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                inodes.add(os.readlink(f"/proc/{pid}/fd/{name}").removeprefix("socket:[").rstrip("]"))
            except FileNotFoundError:
                continue
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
        return sum(line.split()[9] in inodes for line in lines)


def translate(address: str, **access: object) -> None:
    with Client(address, timeout_s=PATIENCE_S, **access) as client:
        assert client.translate("Good morning.", model="en-de").text == "Guten Morgen."


@pytest.fixture(scope="module")
def impatient(_bundle: None) -> Iterator[ImpatientServer]:
    impatient = ImpatientServer()
    try:
        yield impatient
        impatient.wait_until_at_rest()
        assert impatient.open_descriptors() <= impatient.descriptors + OWN_DESCRIPTORS
        impatient.server.signal(signal.SIGTERM)
        assert impatient.server.exit_code() == 0
    finally:
        impatient.server.close()


def test_who_begins_and_goes_silent_is_dropped_and_others_are_served(impatient) -> None:
    with going_silent(impatient.connect, HOLD_UPS.values(), 3):
        translate(impatient.server.address)


def test_who_sends_byte_by_byte_does_not_win_time(impatient) -> None:
    with impatient.connect() as connection:
        connection.settimeout(0.05)
        give_up_s = time.monotonic() + PATIENCE_S
        for byte in PREFACE + SETTINGS + HEADERS:
            assert time.monotonic() < give_up_s
            try:
                connection.send(bytes([byte]))
                while connection.recv(4096):
                    pass
                break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("all of it was taken")
    translate(impatient.server.address)


def test_who_pings_all_the_time_is_sent_away(impatient) -> None:
    with impatient.connect() as connection:
        connection.sendall(PREFACE + SETTINGS + PING * 10)
        assert b"too_many_pings" in read_until_closed(connection)


def test_connections_are_bounded_and_those_there_are_go_on(impatient) -> None:
    with Client(impatient.server.address, timeout_s=PATIENCE_S) as client:
        client.list_models()
        crowd = [impatient.connect() for _ in range(MAX_CONNECTIONS + 20)]
        assert client.list_models()
        assert impatient.open_sockets() <= MAX_CONNECTIONS + 4  # what listens, and what scrapes
        for connection in crowd:
            read_until_closed(connection)
            connection.close()
    translate(impatient.server.address)


def test_metadata_is_bounded(impatient) -> None:
    with grpc.insecure_channel(impatient.server.address) as channel:
        list_models = TranslationStub(channel).ListModels
        list_models(pb.ListModelsRequest(), metadata=[("x-large", "a" * 15_000)], timeout=PATIENCE_S)
        with pytest.raises(grpc.RpcError) as caught:
            list_models(pb.ListModelsRequest(), metadata=[("x-large", "a" * 20_000)], timeout=PATIENCE_S)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("method", ["TranslateText", "StreamTranslateText"])
def test_who_never_reads_the_answer_holds_up_neither_others_nor_the_end(serve, method: str) -> None:
    server = serve("--drain-timeout-s=0.1")
    host, _, port = server.address.rpartition(":")
    request = pb.TranslateTextRequest(contents=["Good morning."] * 3, model="en-de").SerializeToString()
    message = bytes(1) + len(request).to_bytes(4) + request
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        connection.sendall(PREFACE + NO_WINDOW + headers(method) + data(message, flags=1))
        until(lambda: server.metric("segments_total", reason="EOS"))
        translate(server.address)
        assert server.metric("slots_active") == 0
        server.signal(signal.SIGTERM)
        assert server.exit_code() == 0


@pytest.mark.usefixtures("_bundle")
def test_a_tls_handshake_that_stalls_is_dropped(tmp_path: Path) -> None:
    authority, files = Authority(), Files(tmp_path)
    files.write(authority.issue())
    impatient = ImpatientServer(f"--tls-certificate={files.certificate}", f"--tls-key={files.key}")
    try:
        outgoing = ssl.MemoryBIO()
        handshake = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            handshake.do_handshake()
        hello = outgoing.read()
        connections = [impatient.connect() for _ in range(12)]
        for connection, part in zip(connections, [b"", hello[:20], hello] * 4, strict=True):
            connection.sendall(part)
        translate(impatient.server.address, credentials=authority.channel_credentials())
        for connection in connections:
            read_until_closed(connection)
            connection.close()
        impatient.wait_until_at_rest()
        assert impatient.open_descriptors() <= impatient.descriptors + OWN_DESCRIPTORS
    finally:
        impatient.server.close()
