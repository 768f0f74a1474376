"""What a server tells people at a terminal once it serves, and nobody else."""

import os
import pty
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import BUNDLE, PATIENCE_S, REPOSITORY


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def read_until(controller: int, word: str) -> str:
    """Reads what a server writes to its terminal until a line holds the word, or the server ends."""
    text = ""
    try:
        while not any(word in line for line in text.split("\n")[:-1]):
            assert select.select([controller], [], [], PATIENCE_S)[0], text
            text += os.read(controller, 4096).decode()
    except OSError:
        pass  # nobody has the terminal open any more
    return text


@pytest.mark.usefixtures("_bundle")
@pytest.mark.parametrize(("flags", "hinted"), [((), True), (("--log-format=json",), False)])
def test_a_terminal_gets_a_command_to_try(flags: tuple[str, ...], hinted: bool) -> None:
    address = free_address()
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "dragoman", "serve", f"--models={BUNDLE}", f"--address={address}"]
    with subprocess.Popen(
        [*command, "--metrics-address=127.0.0.1:0", *flags], stderr=terminal, stdin=terminal, cwd=REPOSITORY
    ) as process:
        os.close(terminal)
        try:
            # Without a hint the next thing that is told is the end.
            text = read_until(controller, "try:" if hinted else "serving")
            process.terminate()
            text += read_until(controller, "stopped")
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            os.close(controller)
    hint = f'try: dragoman translate --address {address} "Good morning."'
    assert (hint in text) == hinted, text


def test_the_hint_names_the_program_that_was_started(monkeypatch, tmp_path: Path) -> None:
    from structlog.testing import capture_logs

    from service import server
    from service.settings import Settings

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "argv", [".venv/bin/dragoman", "serve"])
    with capture_logs() as log:
        server._suggest(Settings(address="127.0.0.1:1"))
        server._suggest(Settings(address="127.0.0.1:0"))
        server._suggest(Settings(address="127.0.0.1:1", api_keys="keys.toml"))
    assert [line["event"] for line in log] == [
        'try: .venv/bin/dragoman translate --address 127.0.0.1:1 "Good morning."'
    ]
