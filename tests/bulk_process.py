"""A `dragoman bulk` process of a test: its input, its end by a signal, its output."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.server_process import BUNDLE, PATIENCE_S, REPOSITORY

_LOOK_S = 0.01


def lines() -> list[str]:
    """Gives the English sentences of the repository, 500 of them."""
    pairs = (REPOSITORY / "tests" / "data" / "en-de.tsv").read_text(encoding="utf-8").splitlines()
    return [pair.partition("\t")[0] for pair in pairs]


def command(*arguments: str | Path) -> list[str]:
    """Gives the command line of `dragoman` with these arguments."""
    return [sys.executable, "-m", "dragoman.cli", *map(str, arguments)]


def bulk(source: Path, out: Path, *flags: str) -> list[str]:
    """Gives the command line of a job with the model of the repository, unless it goes to a server."""
    place = [] if any(flag.startswith("--address") for flag in flags) else ["--models", BUNDLE]
    return command("bulk", source, out, "--id", "id", "--text", "text", *place, *flags)


def start(arguments: Sequence[str], **environment: str) -> subprocess.Popen[bytes]:
    """Starts a command without the settings of this process."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DRAGOMAN_", "RAY_"))}
    return subprocess.Popen(
        arguments, cwd=REPOSITORY, env=inherited | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[int, list[str]]:
    """Waits for its end; gives the exit code and the lines of its standard error."""
    out, err = process.communicate(timeout=PATIENCE_S * 5)
    assert out == b""
    return process.returncode, err.decode().splitlines()


def run(arguments: Sequence[str], **environment: str) -> tuple[int, list[str]]:
    """Runs a command to its end."""
    return finish(start(arguments, **environment))


def parts(out: Path) -> set[str]:
    """Names the parts that are there."""
    return {part.name for part in out.glob("part-*")}


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Waits until something holds while a process runs."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, "the process ended before"
        assert time.monotonic() < deadline_s, "it did not come in time"
        time.sleep(_LOOK_S)


def write_rows(path: Path, texts: Sequence[object], first: int = 0) -> Path:
    """Writes JSON lines with ids that count up."""
    rows = ({"id": f"row-{number}", "text": text} for number, text in enumerate(texts, start=first))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read_rows(out: Path) -> list[dict[str, Any]]:
    """Reads all parts, in the order of their names."""
    return [json.loads(line) for name in sorted(parts(out)) for line in (out / name).read_text().splitlines()]


def translate(texts: Sequence[str]) -> list[str]:
    """Translates lines with `dragoman translate`."""
    lines = "".join(f"{text}\n" for text in texts).encode()
    arguments = command("translate", "--models", BUNDLE)
    done = subprocess.run(arguments, input=lines, capture_output=True, timeout=PATIENCE_S, cwd=REPOSITORY, check=True)
    return done.stdout.decode().split("\n")[:-1]
