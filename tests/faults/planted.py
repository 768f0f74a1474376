"""`dragoman serve` in whose engine faults can be switched on: `python -m tests.faults.planted FOLDER serve ...`.

While FOLDER holds a file `stall`, no step ends; while it holds `broken`, every run of a graph fails. A segment of more
than 100 tokens makes its run of the encoder fail always. Silent peers are pinged every few seconds instead of every
minute. Everything else is the product as it is.
"""

import sys
import time
from pathlib import Path

import numpy as np

from dragoman.cli import main
from service.rpc import listener
from service.runtime.host import EncoderSession
from service.runtime.slots import DecoderStep

POISONOUS_TOKENS = 100
PING_PERIOD_S, PING_TIMEOUT_S = 2.0, 3.0


def plant(folder: Path) -> None:
    """Replace the runs of both graphs by such as can fail."""
    stall, broken = folder / "stall", folder / "broken"
    encode, run = EncoderSession.encode, DecoderStep.run

    def encode_or_fail(self: EncoderSession, sources: list[list[int]]) -> list[np.ndarray]:
        if broken.exists():
            raise RuntimeError("broken")
        if max(map(len, sources)) > POISONOUS_TOKENS:
            raise RuntimeError("poisonous")
        return encode(self, sources)

    def run_or_fail(self: DecoderStep, *rows: int) -> np.ndarray:
        while stall.exists():
            time.sleep(0.01)
        if broken.exists():
            raise RuntimeError("broken")
        return run(self, *rows)

    EncoderSession.encode, DecoderStep.run = encode_or_fail, run_or_fail
    listener.PING_PERIOD_S, listener.PING_TIMEOUT_S = PING_PERIOD_S, PING_TIMEOUT_S


if __name__ == "__main__":
    plant(Path(sys.argv.pop(1)))
    sys.exit(main())
