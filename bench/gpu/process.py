"""A part of `bench.gpu` in a process of its own: neither its crash nor its hanging ends the others."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from bench.frame import Figures, not_held
from bench.gpu.task import Setup, Task

# Of its time a part leaves this much, so that it ends by itself.
_SPARE = 0.1
_EXIT_S = 10.0

Function = Callable[[Task], Figures]


@dataclass(frozen=True)
class Outcome:
    """What became of a part."""

    seconds: float
    error: str | None  # why it ended before its time, in one line; None where it did not
    figures: Figures  # what it found, perhaps not all

    @property
    def failed(self) -> bool:
        """Whether it ended with an error, or found that something is not as it should be."""
        return bool(self.error or not_held(self.figures))

    @property
    def verdict(self) -> str:
        """For people, in one line."""
        if self.error:
            return f"FAILED: {self.error}"
        if broken := not_held(self.figures):
            return f"NOT SO: {'; '.join(broken)}"
        return "as expected" if self.figures.get("checks") else "done"


def run(name: str, function: Function, setup: Setup, size: str, seconds: float) -> Outcome:
    """Run a function, and kill it and all that it has started when its time is up; a log of that name has its words."""
    log = setup.work / f"{name.replace(' ', '-')}.log"
    context = get_context("spawn")  # a forked process could not use a GPU's context
    reader, writer = context.Pipe(duplex=False)
    start_s = time.monotonic()
    process = context.Process(target=_child, args=(function, setup, size, seconds, writer, log))
    process.start()
    writer.close()
    figures, error = Figures(), None
    try:
        while reader.poll(max(start_s + seconds - time.monotonic(), 0.0)):
            found = reader.recv()
            if isinstance(found, str):
                error = found
            else:
                figures = found
        error = f"was ended after {seconds:.0f} s"
    except EOFError:  # it has ended
        process.join(_EXIT_S)
        error = error or _crash(process.exitcode, log)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)
        process.kill()
        process.join()
    return Outcome(time.monotonic() - start_s, error, figures)


def _child(function: Function, setup: Setup, size: str, seconds: float, writer: Connection, log: Path) -> None:
    """Send what the function finds; one that raises an error sends that, in one line."""
    os.setsid()  # so that its own processes can be ended with it
    with log.open("wb") as file:
        for printed in (1, 2):
            os.dup2(file.fileno(), printed)
    try:
        writer.send(function(Task(setup, size, time.monotonic() + seconds * (1 - _SPARE), writer.send)))
    except Exception as raised:
        traceback.print_exc()
        writer.send(f"{type(raised).__name__}: {' '.join(str(raised).split())}")
    sys.stdout.flush()
    writer.close()


def _crash(code: int | None, log: Path) -> str | None:
    """Say how a process ended that did not end well, with the last line that it printed."""
    if not code:
        return None
    how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    said = [line.strip() for line in log.read_text(errors="replace").split("\n") if line.strip()]
    return f"{how}: {said[-1] if said else 'it printed nothing'}"
