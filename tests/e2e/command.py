"""Commands of `dragoman`, run in the process of the tests, which has imported all; or as a process, as a user does."""

import io
import subprocess
import sys

import pytest

from dragoman.cli import main
from tests.server_process import PATIENCE_S, REPOSITORY

Done = subprocess.CompletedProcess[bytes]


def run(*arguments: str, stdin: bytes = b"") -> Done:
    """Run a command in this process, with streams of its own."""
    written = [io.BytesIO() for _ in range(2)]
    out, err = (io.TextIOWrapper(stream, encoding="utf-8", write_through=True) for stream in written)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            code = main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(arguments, code, *(stream.getvalue() for stream in written))


def run_as_process(*arguments: str, stdin: bytes = b"") -> Done:
    """Run a command as a process."""
    command = [sys.executable, "-m", "dragoman.cli", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE_S, cwd=REPOSITORY)


def assert_one_line(done: Done, *words: str) -> None:
    """See that a command refused, and said so in a line with these words."""
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    assert [word for word in words if word not in done.stderr.decode()] == []
