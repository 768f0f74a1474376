"""A part of `bench.gpu` as a process of its own: neither its crash nor its hanging ends the others."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.gpu.setup import Figures


@dataclass(frozen=True)
class Outcome:
    """What became of a part.

    Attributes:
        error: why it ended before its time, in one line; None where it did not.
        figures: what it found, perhaps not all.
    """

    seconds: float
    error: str | None
    figures: Figures


class Process:
    def __init__(self, name: str, function: str, size: str, seconds: float, setup: Path) -> None:
        """Start it.

        Args:
            name: of the part, for its files, which lie beside `setup`: what it found, and what it printed.
        """
        self._out = setup.with_name(f"{name.replace(' ', '-')}.json")
        self._log = self._out.with_suffix(".log")
        self._out.unlink(missing_ok=True)
        child = [sys.executable, "-m", "dragoman_server", "bench.gpu.child"]
        command = [*child, function, size, str(seconds), str(setup), str(self._out)]
        self._start_s = time.monotonic()
        self._end_s = self._start_s + seconds
        with self._log.open("wb") as log:
            # A session of its own, so that its own processes can be ended with it.
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended or its time is up; says whether it has ended."""
        left_s = self._end_s - time.monotonic()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(left_s if seconds is None else min(left_s, seconds), 0.0))
        return self._process.poll() is not None

    def end(self) -> Outcome:
        """Kill it and all that it has started, and say what became of it."""
        killed = self._process.poll() is None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        found = json.loads(self._out.read_text()) if self._out.exists() else {"figures": Figures()}
        if "seconds" in found:
            return Outcome(**found)
        seconds = time.monotonic() - self._start_s
        error = f"was ended after {seconds:.0f} s" if killed else f"{_describe(code)}: {self._last_line()}"
        return Outcome(seconds, error, found["figures"])

    def _last_line(self) -> str:
        said = self._log.read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(said) if line.strip()), "it printed nothing")


def _describe(code: int) -> str:
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
