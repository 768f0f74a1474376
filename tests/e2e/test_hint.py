"""What a server tells people at a terminal once it serves, and nobody else."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.server_process import free_ports
from dragoman.cli import main
from tests.server_process import BUNDLE, PATIENCE_S, REPOSITORY


def free_address() -> str:
    return f"127.0.0.1:{free_ports(1)[0]}"


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


def said_at_a_terminal(program: Sequence[str], *flags: str, hinted: bool) -> str:
    """Starts a server at a terminal, stops it, and gives all that it wrote there."""
    command = [*program, "serve", f"--models={BUNDLE}", "--metrics-address=127.0.0.1:0", "--http-address=none", *flags]
    controller, terminal = pty.openpty()
    with subprocess.Popen(command, stderr=terminal, stdin=terminal, cwd=REPOSITORY) as process:
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
    return text


@pytest.mark.usefixtures("_bundle")
@pytest.mark.parametrize("processes", [1, 2])
def test_a_terminal_gets_a_command_to_try(processes: int) -> None:
    flags = f"--address={(address := free_address())}", f"--processes={processes}"
    text = said_at_a_terminal((sys.executable, "-m", "dragoman"), *flags, hinted=True)
    assert text.count(f'try: dragoman translate --address {address} "Good morning."') == 1


@pytest.mark.usefixtures("_bundle")
def test_the_hint_names_the_program_that_was_started() -> None:
    program, address = Path(sys.executable).with_name("dragoman"), free_address()
    if not program.is_file():
        pytest.skip("dragoman is not installed")
    text = said_at_a_terminal((str(program),), f"--address={address}", hinted=True)
    assert f'try: {program} translate --address {address} "Good morning."' in text


@pytest.mark.usefixtures("_bundle")
@pytest.mark.parametrize("case", ["no log for people", "any free port", "a key is needed"])
def test_without_a_command_that_would_work_there_is_no_hint(case: str, tmp_path: Path, capsys) -> None:
    assert main(["api-key", "alice"]) == 0
    (keys := tmp_path / "keys.toml").write_text(capsys.readouterr().out)
    flags = {
        "no log for people": (f"--address={free_address()}", "--log-format=json"),
        "any free port": ("--address=127.0.0.1:0",),
        "a key is needed": (f"--address={free_address()}", f"--api-keys={keys}"),
    }
    text = said_at_a_terminal((sys.executable, "-m", "dragoman"), *flags[case], hinted=False)
    assert "serving" in text
    assert "try:" not in text
