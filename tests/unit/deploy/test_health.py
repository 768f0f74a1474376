"""What asks a replica for its health, against a real gRPC server: the image's script and the balancer's bytes."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from tests.certificates import Authority, Files

ROOT = Path(__file__).resolve().parents[3]
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Replica(NamedTuple):
    port: int
    health: health.HealthServicer


@pytest.fixture
def replica() -> Iterator[Replica]:
    server = grpc.server(ThreadPoolExecutor(2))
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield Replica(port, servicer)
    server.stop(0).wait()


def run_script(port: int, **settings: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"DRAGOMAN_ADDRESS": f"0.0.0.0:{port}"} | settings
    return subprocess.run([sys.executable, ROOT / "deploy/healthcheck.py"], env=env, text=True, capture_output=True)


def test_script_passes_a_server_that_serves(replica: Replica) -> None:
    done = run_script(replica.port)
    assert (done.returncode, done.stdout) == (0, "SERVING\n")


def test_script_fails_a_server_that_does_not_serve(replica: Replica) -> None:
    replica.health.set("", NOT_SERVING)
    done = run_script(replica.port)
    assert (done.returncode, done.stdout) == (1, "NOT_SERVING\n")


def test_script_fails_where_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        done = run_script(unused.getsockname()[1])
    assert (done.returncode, done.stdout) == (1, "StatusCode.UNAVAILABLE\n")


@pytest.mark.parametrize("mutual", [False, True])
@pytest.mark.parametrize("name", ["translate.example.com", "*.example.com", "192.0.2.7"])
def test_script_goes_over_tls_whatever_the_name_of_the_server(tmp_path: Path, name: str, mutual: bool) -> None:
    authority, files = Authority(), Files(tmp_path)
    files.write(authority.issue(name))
    pair = (files.key.read_bytes(), files.certificate.read_bytes())
    server = grpc.server(ThreadPoolExecutor(2))
    health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair], authority.pem, mutual))
    server.start()
    settings = {"DRAGOMAN_TLS_CERTIFICATE": str(files.certificate), "DRAGOMAN_TLS_KEY": str(files.key)}
    done = run_script(port, **settings)
    assert (done.returncode, done.stdout) == (0, "SERVING\n")
    files.write(authority.issue(name))  # another server's
    done = run_script(port, **settings)
    assert (done.returncode, done.stdout[:7]) == (1, "no TLS:")
    server.stop(0).wait()


@pytest.mark.parametrize(("status", "up"), [(SERVING, True), (NOT_SERVING, False)])
def test_balancer_counts_a_replica_as_up_only_while_it_serves(replica: Replica, status: int, up: bool) -> None:
    replica.health.set("", status)
    config = (ROOT / "deploy/balancer/haproxy.cfg").read_text()
    request = bytes.fromhex("".join(re.findall(r"tcp-check send-binary (\w+)", config)))
    has_status, serves = map(bytes.fromhex, re.findall(r"tcp-check expect .*binary (\w+)", config))
    answer = _answer(replica.port, request)
    assert has_status in answer
    assert (serves in answer) == up


def _answer(port: int, request: bytes) -> bytes:
    """Send bytes and read until the trailers of stream 1 (a HEADERS frame that ends it) have come."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request)
        while not _ended(answer):
            more = connection.recv(4096)
            assert more, answer
            answer += more
    return answer


def _ended(answer: bytes) -> bool:
    """Walk through the HTTP/2 frames: length (3 bytes), type, flags, stream (4 bytes), payload."""
    at = 0
    while len(answer) >= at + 9:
        at_end = at + 9 + int.from_bytes(answer[at : at + 3], "big")
        is_headers, ends_stream = answer[at + 3] == 1, answer[at + 4] & 1
        if is_headers and ends_stream and len(answer) >= at_end:
            return True
        at = at_end
    return False
