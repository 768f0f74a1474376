"""The process of an import: its packages and its memory stay out of the server's process."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dragoman.errors import DataError

PROGRAM: Final = (sys.executable, "-P", "-m", "dragoman", "import")
_EXIT_TERMINATED: Final = 128 + signal.SIGTERM


def import_into(folder: Path, arguments: Sequence[str], variables: Mapping[str, str]) -> None:
    """Run `dragoman import`; its output goes to standard error, since standard output may be for translations.

    Args:
        folder: the folder of the checkpoint. It exists only for a moment, so output lines that name it are left out.
        arguments: further arguments of the command.
        variables: environment variables in addition to those of this process.

    Raises:
        DataError: a signal ended the process.
        SystemExit: the import failed, and printed the reason; or this process was told to end.
    """
    command = [*PROGRAM, *arguments, "--out", str(folder)]
    environment = os.environ | variables | {"PYTHONUNBUFFERED": "1"}
    with (
        _ended_by_sigterm(),
        subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, encoding="utf-8", errors="replace") as child,
    ):
        try:
            for line in child.stdout or ():
                if str(folder) not in line:
                    print(line, end="", file=sys.stderr, flush=True)
            code = child.wait()
        finally:
            child.kill()
    if code < 0:
        raise DataError(f"the import was ended by {signal.Signals(-code).name}; it may need more memory than there is")
    if code:
        raise SystemExit(code)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Make SIGTERM end the block by an exception, so that files are cleaned up."""

    def end(*_: object) -> None:
        raise SystemExit(_EXIT_TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
