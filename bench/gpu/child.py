"""One part of `bench.gpu`, in this process: `python -m bench.gpu.child FUNCTION SIZE SECONDS SETUP OUT`."""

import importlib
import sys
import time
import traceback
from pathlib import Path

from bench.files import write_json
from bench.gpu.budget import Clock
from bench.gpu.setup import Figures, Setup, Task

# Of its time a part leaves this much, so that it ends by itself.
_SPARE = 0.1


def main(function: str, size: str, seconds: str, setup: str, out: str) -> None:
    """Run the function and write what became of it.

    Args:
        seconds: after which the process is killed.
        out: JSON file that is written: `figures` so far; at the end the `seconds` taken and the `error`, if any.
    """
    start_s = time.monotonic()
    figures: Figures = {}

    def note(found: Figures) -> None:
        nonlocal figures
        figures = found
        write_json(Path(out), {"figures": figures})

    error = None
    try:
        clock = Clock.of(float(seconds) * (1 - _SPARE))
        module, name = function.split(":")
        part = getattr(importlib.import_module(module), name)
        figures = part(Task(Setup.read(Path(setup)), size, clock, note))
    except Exception as raised:
        traceback.print_exc()
        error = f"{type(raised).__name__}: {' '.join(str(raised).split())}"
    found = {"figures": figures, "seconds": time.monotonic() - start_s, "error": error}
    write_json(Path(out), found)


if __name__ == "__main__":
    main(*sys.argv[1:])
