"""TLS on a real server: one for all tests here, whose files they replace."""

import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from dragoman import Client, ServerUnavailableError
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.certificates import Authority, Files, for_openssl_only
from tests.server_process import PATIENCE_S, REPOSITORY, ServerProcess
from tests.waiting import until

LONG = " ".join(f"Tom bought {number} books." for number in range(100, 400))


class MutualTlsServer:
    """A server that wants certificates of its callers, and the authorities of both sides."""

    def __init__(self, folder: Path) -> None:
        self.authority, self.client_authority = Authority(), Authority()
        self.files = Files(folder)
        self.files.write(self.authority.issue())
        self.files.client_ca.write_bytes(self.client_authority.pem)
        self.server = ServerProcess(
            (
                f"--tls-certificate={self.files.certificate}",
                f"--tls-key={self.files.key}",
                f"--tls-client-ca={self.files.client_ca}",
            )
        )
        self.server.wait_until_serving()

    def client(self, certificate: tuple[bytes, bytes] | None) -> Client:
        return Client(
            self.server.address,
            credentials=self.authority.channel_credentials(certificate),
            timeout_s=PATIENCE_S,
        )

    def served_certificate(self) -> str:
        """The certificate that a new connection is shown, in PEM."""
        host, _, port = self.server.address.rpartition(":")
        return ssl.get_server_certificate((host, int(port)), timeout=PATIENCE_S)

    def reloaded(self, value: float) -> None:
        until(lambda: self.server.metric("files_in_force", files="tls") == value)


@pytest.fixture(scope="module")
def guarded(_bundle: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MutualTlsServer]:
    guarded = MutualTlsServer(tmp_path_factory.mktemp("tls"))
    try:
        yield guarded
        guarded.server.signal(signal.SIGTERM)
        assert guarded.server.exit_code() == 0
    finally:
        guarded.server.close()


def test_a_caller_with_a_certificate_of_the_authority_is_served(guarded) -> None:
    with guarded.client(guarded.client_authority.issue()) as client:
        assert client.translate("Good morning.", model="en-de").text == "Guten Morgen."


@pytest.mark.parametrize("certificate", ["none", "of another authority"])
def test_any_other_is_not(guarded, certificate: str) -> None:
    pair = None if certificate == "none" else Authority().issue()
    with guarded.client(pair) as client, pytest.raises(ServerUnavailableError, match="want TLS, or a client"):
        client.list_models()


def test_plain_text_is_not_served(guarded) -> None:
    with (
        Client(guarded.server.address, timeout_s=PATIENCE_S) as client,
        pytest.raises(ServerUnavailableError, match="want TLS, or a client certificate"),
    ):
        client.list_models()


@pytest.fixture
def command(guarded, tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command against the server, with the authority that vouches for it."""
    authority, texts = tmp_path / "server-ca.crt", tmp_path / "texts.txt"
    authority.write_bytes(guarded.authority.pem)
    texts.write_text("Good morning.\n")
    arguments = {
        "translate": ["Good morning."],
        "models": [],
        "load-test": ["--data", str(texts), "--concurrency", "1", "--requests", "2"],
    }

    def run(name: str, *flags: str) -> subprocess.CompletedProcess[str]:
        place = ["--address", guarded.server.address, "--tls-ca", str(authority)]
        program = [sys.executable, "-m", "dragoman.cli", name, *place, *flags, *arguments[name]]
        return subprocess.run(program, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_S)

    return run


COMMANDS = {"translate": "Guten Morgen.", "models": "en-de", "load-test": "latency p95"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_shows_a_certificate(guarded, command, tmp_path, name: str) -> None:
    own = Files(tmp_path)
    own.write(guarded.client_authority.issue())
    done = command(name, "--tls-cert", str(own.certificate), "--tls-key", str(own.key))
    assert (done.returncode, COMMANDS[name] in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_certificate_without_its_key_or_that_is_none_is_one_line(command, tmp_path, name: str) -> None:
    files = Files(tmp_path)
    files.write((b"no certificate", b"no key"))
    flags = ("--tls-cert", str(files.certificate), "--tls-key", str(files.key))
    for given, said in ((flags[:2], "argument --tls-cert: needs --tls-key"), (flags, "not a certificate and its key")):
        done = command(name, *given)
        assert (done.returncode, done.stdout) == (2, "")
        [line] = done.stderr.splitlines()
        assert line.startswith(f"dragoman {name}: ")
        assert said in line


def test_new_connections_get_the_new_certificate_and_running_calls_go_on(guarded) -> None:
    first = guarded.served_certificate()
    with grpc.secure_channel(
        guarded.server.address, guarded.authority.channel_credentials(guarded.client_authority.issue())
    ) as channel:
        request = pb.TranslateTextRequest(contents=[LONG], model="en-de")
        stream = TranslationStub(channel).StreamTranslateText(request, timeout=PATIENCE_S)
        next(stream)
        pair = guarded.authority.issue()
        guarded.files.write(pair)
        guarded.server.wait_for("files reloaded")
        assert guarded.served_certificate() != first
        assert ssl.PEM_cert_to_DER_cert(guarded.served_certificate()) == ssl.PEM_cert_to_DER_cert(pair[0].decode())
        assert list(stream)[-1].result.segments == 300
        TranslationStub(channel).ListModels(pb.ListModelsRequest(), timeout=PATIENCE_S)


@pytest.mark.parametrize("broken", ["half a certificate", "the key of another", "of a kind that gRPC does not know"])
def test_a_broken_pair_is_told_and_the_old_one_stays(guarded, broken: str) -> None:
    before = guarded.served_certificate()
    old = guarded.files.certificate.read_bytes(), guarded.files.key.read_bytes()
    new = guarded.authority.issue()
    guarded.files.write(
        {
            "half a certificate": (new[0][:100], new[1]),
            "the key of another": (old[0], new[1]),
            "of a kind that gRPC does not know": for_openssl_only(),
        }[broken]
    )
    guarded.server.wait_for("files not reloaded")
    assert guarded.server.metric("files_in_force", files="tls") == 0
    assert guarded.served_certificate() == before
    with guarded.client(guarded.client_authority.issue()) as client:
        client.list_models()
    guarded.files.write(old)
    guarded.reloaded(1)


@pytest.mark.parametrize("fault", ["no such file", "of another", "of a kind that gRPC does not know"])
def test_bad_files_at_the_start_end_it_with_2_and_one_line(launch, tmp_path, fault: str) -> None:
    authority, files = Authority(), Files(tmp_path)
    files.write(authority.issue())
    if fault == "no such file":
        files.key.unlink()
    elif fault == "of a kind that gRPC does not know":
        files.write(for_openssl_only())
    else:
        files.key.write_bytes(authority.issue()[1])
    server = launch(f"--tls-certificate={files.certificate}", f"--tls-key={files.key}")
    assert server.exit_code() == 2
    assert len(server.log) == 1
    assert server.log[0].startswith("dragoman serve: ")
    assert str(files.key) in server.log[0]
