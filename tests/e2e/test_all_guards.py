"""TLS, API keys, two models and a watched folder on one server; commands reach it, and all changes under load."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman import Client
from dragoman.access import API_KEY_VARIABLE
from tests.certificates import Authority, Files
from tests.e2e.bundles import copy_bundle
from tests.e2e.command import Done, run
from tests.server_process import BUNDLE, PATIENCE_S, ServerProcess
from tests.waiting import until


class GuardedServer:
    """The server, and all that it watches."""

    def __init__(self, folder: Path) -> None:
        self.models, self.ca, self._file = folder / "models", folder / "authorities.crt", folder / "keys.toml"
        self.authority, self.files = Authority(), Files(folder)
        self.files.write(self.authority.issue())
        self.ca.write_bytes(self.authority.pem)
        self._lines: list[str] = []
        self.key = self.add_key("first")
        for name in ("one", "two"):
            copy_bundle(BUNDLE, self.models / name, name=name)
        self.server = ServerProcess(
            (
                f"--models={self.models}",
                "--watch-models-s=0.2",
                f"--tls-certificate={self.files.certificate}",
                f"--tls-key={self.files.key}",
                f"--api-keys={self._file}",
                "--http-address=127.0.0.1:0",
            )
        )
        self.server.wait_until_serving()

    def add_key(self, name: str) -> str:
        done = run("api-key", name)
        self._lines.append(done.stdout.decode())
        self._file.write_text("".join(self._lines))
        return done.stderr.decode().split()[-1]

    def client(self, key: str) -> Client:
        credentials = self.authority.channel_credentials()
        return Client(self.server.address, api_key=key, credentials=credentials, timeout_s=PATIENCE_S)

    def run(self, command: str, *arguments: str, key: str | None = None, over_http: bool = False) -> Done:
        """Runs a command against the server, with a key in the environment or none."""
        place = ("--http", self.server.http_address) if over_http else ("--address", self.server.address)
        with pytest.MonkeyPatch.context() as patch:
            if key:
                patch.setenv(API_KEY_VARIABLE, key)
            return run(command, *place, "--tls-ca", str(self.ca), *arguments)


@pytest.fixture(scope="module")
def guarded(_bundle: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServer]:
    guarded = GuardedServer(tmp_path_factory.mktemp("guards"))
    yield guarded
    guarded.server.close()


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [(["models"], b"NAME"), (["translate", "--model", "one", "Good morning."], b"Guten Morgen.")],
)
def test_commands_reach_the_server_with_a_key_only(guarded: GuardedServer, arguments: list[str], answer: bytes) -> None:
    done = guarded.run(*arguments, key=guarded.key)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(answer)
    refused = guarded.run(*arguments)
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert refused.stderr.endswith(b": no API key: give one with --api-key KEY or DRAGOMAN_API_KEY\n")
    assert guarded.run(*arguments, "--api-key", "nobody's").returncode == 2


@pytest.mark.parametrize("over_http", [False, True])
def test_a_load_test_reaches_it_and_reports_no_key(guarded: GuardedServer, tmp_path: Path, over_http: bool) -> None:
    data, report = tmp_path / "texts.txt", tmp_path / "report.json"
    data.write_text("Good morning.\nGood night.\n")
    load = ["load-test", "--data", str(data), "--concurrency", "2", "--requests", "6", "--json", str(report)]
    for more in ([], ["--stream"], ["--verify"]):
        done = guarded.run(*load, "--api-key", guarded.key, *more, over_http=over_http)
        assert done.returncode == 0, done.stderr
        assert json.loads(report.read_text())["completed"] == 6
        assert guarded.key.encode() not in report.read_bytes() + done.stdout + done.stderr


def test_certificate_keys_and_models_change_and_no_call_fails(guarded: GuardedServer) -> None:
    stop, failures, keys = threading.Event(), list[Exception](), [guarded.key]

    def keep_calling(call: Callable[[Client], object]) -> None:
        while not stop.is_set():
            try:
                with guarded.client(keys[-1]) as client:  # a new connection, with the certificate of now
                    call(client)
            except Exception as error:
                failures.append(error)

    calls: list[Callable[[Client], object]] = [
        lambda client: client.translate(f"Tom has {time.monotonic_ns()} books.", model="one"),
        lambda client: list(client.stream(f"Tom has {time.monotonic_ns()} books.", model="two")),
        lambda client: list(client.translate_many([f"It is {time.monotonic_ns()}."] * 3, model="one")),
    ]
    threads = [threading.Thread(target=keep_calling, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    guarded.files.write(guarded.authority.issue())
    key = guarded.add_key("second")
    copy_bundle(BUNDLE, guarded.models / "one", name="one", parameters=1)
    guarded.server.wait_for("retired")
    until(lambda: guarded.run("models", key=key).returncode == 0)
    keys.append(key)
    until(lambda: guarded.server.metric("api_key_requests_total", key="second", outcome="ADMITTED") > 9)
    stop.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert failures == []
    assert guarded.server.metric("model_reloads_total", model="one", outcome="loaded") == 1
    assert all(guarded.server.metric("files_in_force", files=files) == 1 for files in ("tls", "api_keys"))
