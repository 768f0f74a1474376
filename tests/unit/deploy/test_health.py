"""What asks a replica for its health, against a real gRPC server: the image's script and the balancer's bytes."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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


def run_script(port: int, *flags: str, **settings: str) -> tuple[int, str]:
    """Give its exit code, and the one line that it prints."""
    env = os.environ | {"DRAGOMAN_ADDRESS": f"0.0.0.0:{port}"} | settings
    command = [sys.executable, ROOT / "deploy/healthcheck.py", *flags]
    done = subprocess.run(command, env=env, text=True, capture_output=True)
    assert done.stdout.count("\n") == 1, done
    return done.returncode, done.stdout.rstrip()


def test_script_passes_a_server_that_serves(replica: Replica) -> None:
    assert run_script(replica.port) == (0, "SERVING")


def test_script_fails_a_server_that_does_not_serve(replica: Replica) -> None:
    replica.health.set("", NOT_SERVING)
    assert run_script(replica.port) == (1, "NOT_SERVING")


def test_script_fails_where_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        assert run_script(unused.getsockname()[1]) == (1, "StatusCode.UNAVAILABLE")


@pytest.mark.parametrize(
    ("listens", "asked"), [("127.0.0.2", "127.0.0.2"), ("[::1]", "[::1]"), ("[::]", "[::]"), ("127.0.0.1", "")]
)
def test_script_asks_where_the_server_listens(listens: str, asked: str) -> None:
    server = grpc.server(ThreadPoolExecutor(2))
    health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
    try:
        port = server.add_insecure_port(f"{listens}:0")
    except RuntimeError:
        pytest.skip(f"this system has no {listens}")
    server.start()
    assert run_script(port, DRAGOMAN_ADDRESS=f"{asked}:{port}") == (0, "SERVING")
    server.stop(0).wait()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@contextmanager
def tls_replica(files: Files, client_ca: bytes | None = None) -> Iterator[Callable[..., tuple[int, str]]]:
    """Yield the script, run with the settings of a server that has the files as they are, and with flags."""
    pair = (files.key.read_bytes(), files.certificate.read_bytes())
    settings = {"DRAGOMAN_TLS_CERTIFICATE": str(files.certificate), "DRAGOMAN_TLS_KEY": str(files.key)}
    if client_ca is not None:
        settings["DRAGOMAN_TLS_CLIENT_CA"] = str(files.client_ca)
    server = grpc.server(ThreadPoolExecutor(2))
    health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
    credentials = grpc.ssl_server_credentials([pair], client_ca, client_ca is not None)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    yield lambda *flags: run_script(port, *flags, **settings)
    server.stop(0).wait()


@pytest.mark.parametrize("mutual", [False, True])
@pytest.mark.parametrize(
    "names",
    [
        ("translate.example.com",),
        ("*.example.com",),
        ("192.0.2.7",),
        ("2001:db8::7",),
        ("ops@example.com", "translate.example.com"),
    ],
)
def test_script_goes_over_tls_whatever_the_name_of_the_server(
    files: Files, names: tuple[str, ...], mutual: bool
) -> None:
    authority = Authority()
    files.write(authority.issue(*names))
    with tls_replica(files, authority.pem if mutual else None) as script:
        assert script() == (0, "SERVING")


def test_script_says_that_a_certificate_is_for_no_host(files: Files) -> None:
    files.write(Authority().issue("ops@example.com"))
    with tls_replica(files) as script:
        code, said = script()
    assert (code, said[:57]) == (1, "no TLS: the certificate is made out for no host: its subj")


def test_script_says_that_the_key_is_missing() -> None:
    settings = {"DRAGOMAN_TLS_CERTIFICATE": "tls.crt", "DRAGOMAN_TLS_CLIENT_CA": "ca.crt"}
    code, said = run_script(1, **settings)
    assert (code, said[:61]) == (1, "DRAGOMAN_TLS_CLIENT_CA needs a certificate and its key to sho")


@pytest.mark.parametrize("change", ["broken", "of another"])
def test_script_passes_a_server_that_goes_on_with_what_its_files_held(files: Files, change: str) -> None:
    files.write(Authority().issue())
    with tls_replica(files) as script:
        files.write((b"half a", b"file") if change == "broken" else Authority().issue())
        assert script() == (0, "SERVING")


@pytest.mark.parametrize("fault", ["no certificate", "of another", "no such file"])
def test_script_passes_a_server_whose_own_pair_can_no_longer_be_shown(files: Files, fault: str) -> None:
    authority = Authority()
    files.write(authority.issue())
    with tls_replica(files, authority.pem) as script:
        if fault == "no certificate":
            files.certificate.write_bytes(b"half a")
        elif fault == "of another":
            files.key.write_bytes(authority.issue()[1])
        else:
            files.key.unlink()
        code, said = script()
        assert (code, said[:17]) == (0, "answers with TLS;")
        assert f"{files.certificate} and {files.key}: " in said
    code, said = script()
    assert (code, said[:7]) == (1, "no TLS:")


def test_script_shows_a_server_that_wants_one_a_certificate_of_its_own(files: Files, tmp_path: Path) -> None:
    callers, probe = Authority(), Files(tmp_path / "probe")
    files.write(Authority().issue())  # which the authority of the callers does not cover
    probe.certificate.parent.mkdir()
    probe.write(callers.issue())
    with tls_replica(files, callers.pem) as script:
        assert script() == (1, "StatusCode.UNAVAILABLE")
        assert script("--tls-cert", str(probe.certificate), "--tls-key", str(probe.key)) == (0, "SERVING")
        probe.key.unlink()
        code, said = script("--tls-cert", str(probe.certificate), "--tls-key", str(probe.key))
        assert (code, said) == (1, f"no TLS: {probe.certificate} and {probe.key}: No such file or directory")


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
