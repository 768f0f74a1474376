"""A real `dragoman serve` process of a test: started, its log read, signalled, measured, ended."""

import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench import metrics_page
from bench.metrics_page import Page

REPOSITORY = Path(__file__).parents[1]
BUNDLE = REPOSITORY / "models" / "en-de" / "bundle"
PATIENCE_S = 120.0
_LOOK_S = 0.05
_SMALL_PIPE_BYTES = 4096


class LogReader:
    """Reads the standard error of a process on a thread, so that the process never waits for us.

    Attributes:
        pipe: the end that is read.
        lines: all lines so far, with their ends.
    """

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self.lines: list[str] = []
        self._seen = 0  # lines that `wait_for` has passed
        self._ended = False
        self._news = threading.Condition()
        self._may_read, self._stopping = threading.Event(), threading.Event()
        self._may_read.set()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait_for(self, event: str) -> str:
        """Wait for a line that begins so, or whose event does, and give the rest of it."""
        with self._news:
            while True:
                while self._seen == len(self.lines):
                    assert not self._ended, f"no {event!r} in the log: {self.lines}"
                    assert self._news.wait(PATIENCE_S), f"no {event!r} in time: {self.lines}"
                line = self.lines[self._seen]
                self._seen += 1
                text = json.loads(line)["event"] if line.startswith("{") else line
                if text.startswith(event):
                    return str(text.removeprefix(event).strip())

    def pause(self) -> None:
        """Read nothing from now on; the pipe holds a page."""
        fcntl.fcntl(self.pipe, fcntl.F_SETPIPE_SZ, _SMALL_PIPE_BYTES)
        self._may_read.clear()

    def go_on(self) -> None:
        """Read again."""
        self._may_read.set()

    def leave(self) -> None:
        """Close the pipe, though the process may still write."""
        self._stopping.set()
        self.finish()

    def finish(self) -> None:
        """Read to the end, which comes with that of the process, and close."""
        self.go_on()
        self._thread.join(PATIENCE_S)

    def _read(self) -> None:
        rest = b""
        while not self._stopping.is_set():
            self._may_read.wait()
            if not select.select([self.pipe], [], [], _LOOK_S)[0] or not self._may_read.is_set():
                continue
            if not (data := os.read(self.pipe, 65536)):
                break
            *lines, rest = (rest + data).split(b"\n")
            self._append([line + b"\n" for line in lines])
        os.close(self.pipe)
        self._append([rest] if rest else [], ended=True)

    def _append(self, lines: Sequence[bytes], *, ended: bool = False) -> None:
        with self._news:
            self.lines += [line.decode(errors="replace") for line in lines]
            self._ended = ended
            self._news.notify_all()


class ServerProcess:
    """One process of a server, on free ports and with the model of the repository unless it is told otherwise.

    Attributes:
        process: the process.
        reader: what reads its log; None where that goes to a file.
        address: where it listens, once it serves.
        metrics_address: where its metrics are, once it serves.
        http_address: where its HTTP port is, once it serves, if it was told to have one.
    """

    def __init__(
        self,
        arguments: Sequence[str] = (),
        program: Sequence[str] = ("-m", "dragoman.cli"),
        log: Path | None = None,
        names: Sequence[str] = (),
        **environment: str,
    ) -> None:
        """Start it, and do not wait for it.

        Args:
            arguments: flags of `dragoman serve`; they win over those that it gets here.
            program: what the interpreter runs.
            log: file for its standard error; None: it is read here.
            names: of models, in place of the model of the repository.
            environment: variables on top of ours.
        """
        has_models = names or any(argument.startswith("--models") for argument in arguments)
        defaults = {
            "--address": "127.0.0.1:0",
            "--http-address": "none",
            "--metrics-address": "127.0.0.1:0",
        } | ({} if has_models else {"--models": str(BUNDLE)})
        given = [f"{flag}={value}" for flag, value in defaults.items()]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
        reading, writing = os.pipe() if log is None else (None, os.open(log, os.O_WRONLY))
        self.process = subprocess.Popen(
            [sys.executable, *program, "serve", "--log-format=json", *given, *arguments, *names],
            cwd=REPOSITORY,
            env=inherited | environment,
            stdout=subprocess.DEVNULL,
            stderr=writing,
        )
        os.close(writing)
        self.reader = None if reading is None else LogReader(reading)
        self._has_http = any(argument.startswith("--http-address=") for argument in arguments)

    @property
    def log(self) -> list[str]:
        """The lines of its log so far, with their ends."""
        return self.reader.lines if self.reader else []

    @property
    def directory(self) -> Path:
        """Where it runs."""
        return REPOSITORY

    def wait_for(self, event: str) -> str:
        """Wait for a line of its log that begins so, and give the rest of it."""
        assert self.reader, "its log goes to a file"
        return self.reader.wait_for(event)

    def wait_until_serving(self) -> None:
        """Wait until it takes calls, and learn where."""
        self.metrics_address = self.wait_for("metrics on")
        self.address = self.wait_for("listening on")
        if self._has_http:
            self.http_address = self.wait_for("http on")
        self.wait_for("serving")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def exit_code(self, timeout_s: float = PATIENCE_S) -> int:
        """Wait for the end, and for the last line of the log.

        Raises:
            subprocess.TimeoutExpired: it does not come in time.
        """
        code = self.process.wait(timeout_s)
        if self.reader:
            self.reader.finish()
        return code

    def scrape(self) -> Page:
        """Read the metrics."""
        return metrics_page.read(self.metrics_address, PATIENCE_S)

    def metric(self, name: str, **labels: str) -> float:
        """Add up a metric over its series that have these labels."""
        # Only these lines are parsed: some tests ask many times a second.
        lines = metrics_page.fetch(self.metrics_address, PATIENCE_S).split("\n")
        page = Page.parse("".join(f"{line}\n" for line in lines if line.startswith(f"dragoman_{name}")))
        return page.total(name, **labels)

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
        self.exit_code()


@contextmanager
def serving(*arguments: str, program: Sequence[str] = ("-m", "dragoman.cli")) -> Iterator[ServerProcess]:
    """Run a server that takes calls, and see that it ends well.

    Args:
        *arguments: flags of `dragoman serve`.
        program: what the interpreter runs.
    """
    process = ServerProcess(arguments, program)
    try:
        process.wait_until_serving()
        yield process
        process.signal(signal.SIGTERM)
        assert process.exit_code() == 0
        assert not any("Traceback" in line for line in process.log)
    finally:
        process.close()
