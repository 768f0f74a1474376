"""Real `dragoman serve` processes on free ports, with the model of the repository."""

import fcntl
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import metrics_page
from bench.metrics_page import Page
from dragoman import Client

REPOSITORY = Path(__file__).parents[2]
BUNDLE = REPOSITORY / "models" / "en-de" / "bundle"
PATIENCE_S = 120.0


class ServerProcess:
    """One server. Its log is read by a thread, so that it never waits for us."""

    def __init__(self, arguments: tuple[str, ...], program: tuple[str, ...] = ("-m", "dragoman.cli")) -> None:
        defaults = {"--address": "127.0.0.1:0", "--metrics-address": "127.0.0.1:0", "--models": str(BUNDLE)}
        given = [f"{flag}={value}" for flag, value in defaults.items()]
        command = [sys.executable, *program, "serve", "--log-format=json", *given, *arguments]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
        self.process = subprocess.Popen(
            command, cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        self.log: list[str] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._may_read, self._stop_reading = threading.Event(), False
        self._may_read.set()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            self._lines.put(line)
            self._may_read.wait()
            if self._stop_reading:
                self.process.stderr.close()
                break
        self._lines.put(None)

    def pause_reading(self) -> None:
        """Reads one more line of the log, and then none; the pipe holds a page."""
        assert self.process.stderr is not None
        fcntl.fcntl(self.process.stderr, fcntl.F_SETPIPE_SZ, 4096)
        self._may_read.clear()

    def stop_reading(self) -> None:
        """Closes the log, after a pause."""
        self._stop_reading = True
        self._may_read.set()

    @property
    def directory(self) -> Path:
        return REPOSITORY

    def wait_for(self, event: str) -> str:
        """Waits for a log line that begins so, and gives the rest of it."""
        while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
            text = json.loads(line)["event"] if line.startswith("{") else line
            if text.startswith(event):
                return text.removeprefix(event).strip()
        raise AssertionError(f"no {event!r} in the log: {self.log}")

    def wait_until_serving(self) -> None:
        self.metrics_address = self.wait_for("metrics on")
        self.address = self.wait_for("listening on")
        self.wait_for("serving")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """Waits for the end."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def scrape(self) -> Page:
        """Reads the metrics."""
        return metrics_page.read(self.metrics_address, PATIENCE_S)

    def metric(self, name: str, **labels: str) -> float:
        return self.scrape().total(name, **labels)

    def close(self) -> None:
        self._may_read.set()
        if self.process.poll() is None:
            self.process.kill()
        self.exit_code()
        assert self.process.stderr is not None
        self.process.stderr.close()


@pytest.fixture(scope="session")
def _bundle() -> None:
    if not (BUNDLE / "bundle.json").is_file():
        pytest.skip("models/en-de/bundle is not there")


@pytest.fixture
def launch(_bundle: None) -> Iterator[Callable[..., ServerProcess]]:
    """Starts servers with more flags, and does not wait for them."""
    processes: list[ServerProcess] = []

    def start(*arguments: str, **options: tuple[str, ...]) -> ServerProcess:
        processes.append(ServerProcess(arguments, **options))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


@pytest.fixture(scope="session")
def server(_bundle: None) -> Iterator[ServerProcess]:
    """One server for all tests that leave it as it was."""
    process = ServerProcess(())
    try:
        process.wait_until_serving()
        yield process
        process.signal(signal.SIGTERM)
        assert process.exit_code() == 0
    finally:
        process.close()


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        yield client
