"""API keys on a real server: one for all tests here, with a caller for each."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from dragoman import Client, ConcurrencyLimitedError, RateLimitedError, UnauthenticatedError
from dragoman.cli import main
from tests.e2e.texts import LONG
from tests.server_process import PATIENCE_S, ServerProcess

LIMITS = {
    "free": [],
    "slow": ["--requests-per-s=0.5", "--burst=3"],
    "single": ["--concurrent-requests=1"],
}


class KeyedServer:
    """A server whose callers need keys, and the keys by name."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.keys: dict[str, str] = {}
        self.server: ServerProcess

    def client(self, name: str) -> Client:
        return Client(self.server.address, api_key=self.keys[name], timeout_s=PATIENCE_S)

    def add(self, capsys: pytest.CaptureFixture[str], name: str, *limits: str) -> None:
        """Does what the help of `dragoman api-key` says."""
        assert main(["api-key", name, *limits]) == 0
        line, told = capsys.readouterr()
        self.keys[name] = told.split()[-1]
        assert self.keys[name] not in line
        self.file.write_text((self.file.read_text() if self.file.exists() else "") + line)


@pytest.fixture(scope="module")
def started(_bundle: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedServer]:
    keyed = KeyedServer(tmp_path_factory.mktemp("keys") / "keys.toml")
    yield keyed
    server = keyed.server
    try:
        server.signal(signal.SIGTERM)
        assert server.exit_code() == 0
        for key in keyed.keys.values():
            assert not any(key in line for line in server.log)
    finally:
        server.close()


@pytest.fixture
def keyed(started: KeyedServer, capsys: pytest.CaptureFixture[str]) -> KeyedServer:
    if not started.keys:
        for name, limits in LIMITS.items():
            started.add(capsys, name, *limits)
        started.server = ServerProcess((f"--api-keys={started.file}",))
        started.server.wait_until_serving()
    return started


def test_a_key_lets_in_and_nothing_else_does(keyed) -> None:
    with keyed.client("free") as client:
        assert client.translate("Good morning.", model="en-de").text == "Guten Morgen."
        assert client.list_models()
    for access in ({}, {"api_key": "dragoman_wrong"}, {"metadata": {"authorization": "Basic abc"}}):
        with Client(keyed.server.address, timeout_s=PATIENCE_S, **access) as client:
            for call in (lambda: client.translate("a", model="en-de"), lambda: list(client.stream("a", model="en-de"))):
                with pytest.raises(UnauthenticatedError):
                    call()
            with pytest.raises(UnauthenticatedError):
                client.list_models()
    assert keyed.server.metric("api_key_requests_total", key="free", outcome="ADMITTED") == 2
    assert keyed.server.metric("rejected_total", reason="UNAUTHENTICATED") == 9


def test_probes_and_reflection_need_no_key(keyed) -> None:
    with grpc.insecure_channel(keyed.server.address) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        assert "dragoman.v1.Translation" in ProtoReflectionDescriptorDatabase(channel).get_services()


def test_who_comes_back_when_told_is_served(keyed) -> None:
    with keyed.client("slow") as client:
        for _ in range(3):
            client.translate("Good morning.", model="en-de")
        with pytest.raises(RateLimitedError) as caught:  # on a busy machine, perhaps not at the first try
            list(iter(lambda: client.translate("Good morning.", model="en-de"), None))
        assert caught.value.metadata == {"requests_per_s": "0.5", "burst": "3"}
        time.sleep(caught.value.retry_delay_s)
        client.translate("Good morning.", model="en-de")
    assert keyed.server.metric("rejected_total", reason="RATE_LIMITED") == 1
    assert keyed.server.metric("api_key_requests_total", key="slow", outcome="RATE_LIMITED") == 1


def test_calls_at_a_time_are_limited(keyed) -> None:
    with keyed.client("single") as client:
        stream = client.stream(LONG, model="en-de")
        next(stream)
        with pytest.raises(ConcurrencyLimitedError) as caught:
            client.translate("Good morning.", model="en-de")
        assert caught.value.retry_delay_s is not None
        with keyed.client("free") as other:
            other.translate("Good morning.", model="en-de")
        stream.close()
        give_up_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                client.translate("Good morning.", model="en-de")
                return
            except ConcurrencyLimitedError as error:
                assert time.monotonic() < give_up_s
                time.sleep(error.retry_delay_s or 0)


def test_keys_come_and_go_without_a_restart(keyed, capsys) -> None:
    keyed.add(capsys, "late")
    keyed.server.wait_for("files reloaded")
    with keyed.client("late") as client:
        client.list_models()
        good = keyed.file.read_text()
        keyed.file.write_text(good.replace("late", "late ="))
        keyed.server.wait_for("files not reloaded")
        assert keyed.server.metric("files_in_force", files="api_keys") == 0
        client.list_models()
        keyed.file.write_text("".join(line for line in good.splitlines(True) if not line.startswith("late")))
        keyed.server.wait_for("files reloaded")
        assert keyed.server.metric("files_in_force", files="api_keys") == 1
        with pytest.raises(UnauthenticatedError):
            client.list_models()


def test_a_bad_file_at_the_start_ends_it_with_2_and_one_line(launch, tmp_path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text("alice = 1")
    server = launch(f"--api-keys={path}")
    assert server.exit_code() == 2
    assert len(server.log) == 1
    assert server.log[0].startswith(f"dragoman serve: --api-keys: {path}: ")
