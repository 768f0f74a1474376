"""How each program is started as a server, and the settings worth a try there."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers import ct2, ours
from bench.peers.contender import Settings
from bench.server_process import NOTHING_FREE, serve_command
from service import cores

# A peer decodes each sentence again, to its end, however long it had to wait.
_EVERYTHING_DECODED = ["--max-delay-s", "0", "--no-stop-repetition", *NOTHING_FREE]


@dataclass(frozen=True)
class Server:
    """One side of a comparison of servers.

    Attributes:
        command: starts a server under settings, once its addresses are appended.
    """

    name: str
    precision: str
    choices: Sequence[Settings]
    command: Callable[[Settings], list[str]] = field(repr=False)


def our_server(bundle: Path, precision: str, *, quick: bool = False) -> Server:
    threads = cores.available()
    choices = [{"threads": threads, "slots": slots} for slots in ((32,) if quick else (8, 16, 32))]
    command = serve_command("--models", bundle, *_EVERYTHING_DECODED)
    return Server(ours.NAME, precision, choices, lambda settings: [*command, *_flags(settings)])


def ctranslate2_server(bundle: Path, checkpoint: Path, model: Path, precision: str, *, quick: bool = False) -> Server:
    """Run CTranslate2 with a static dynamic batcher behind our servicer."""
    threads = cores.available()
    parallel = {"inter_threads": threads, "intra_threads": 1}
    choices = [
        {**parallel, "size": size, "wait_ms": wait_ms}
        for size in ((16,) if quick else (8, 32))
        for wait_ms in ((0, 2) if quick else (0, 2, 5))
    ]
    if not quick:
        choices.append({"inter_threads": 1, "intra_threads": threads, "size": 32, "wait_ms": 0})
    program = [sys.executable, "-m", "dragoman_server", "bench.peers.serve"]
    command = [*program, "--bundle", str(bundle), "--checkpoint", str(checkpoint)]
    command += ["--ctranslate2", str(model), "--precision", precision]
    return Server(ct2.NAME, precision, choices, lambda settings: [*command, *_flags(settings)])


def _flags(settings: Settings) -> list[str]:
    return [part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", str(value))]
