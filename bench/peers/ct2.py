"""CTranslate2 as a side of a comparison, in this process or as a server."""

import sys
from pathlib import Path
from typing import Any

import ctranslate2

from bench.peers.checkpoint import Checkpoint
from bench.peers.contender import Program, Server, Settings, flags
from bench.peers.convert import vocabulary
from bench.sentences import Sentences
from service import cores

NAME = "ctranslate2"
_COMPUTE_TYPES = {"fp32": "float32", "int8": "int8"}


def program(model: Path, checkpoint: Checkpoint, precision: str, *, quick: bool = False, beam_size: int = 1) -> Program:
    """Make a side of a converted model, and the settings worth a try."""
    threads = cores.available()
    one, together = {"inter_threads": 1, "intra_threads": 1}, {"inter_threads": 1, "intra_threads": threads}
    side_by_side = {"inter_threads": threads, "intra_threads": 1}
    offline = [(side_by_side, "examples", size) for size in ((32, 64) if quick else (8, 16, 32, 64, 128))]
    if not quick:
        offline += [(side_by_side, "tokens", size) for size in (512, 1024)]
        offline += [(together, "examples", size) for size in (32, 64)]
    return Program(
        NAME,
        precision,
        offline=[{**used, "batch_type": kind, "max_batch_size": size} for used, kind, size in offline],
        single=[one, together],
        open=lambda settings: _InProcess(model, checkpoint, precision, settings, beam_size),
    )


def server(model: Path, checkpoint: Path, bundle: Path, precision: str, *, quick: bool = False) -> Server:
    """Make a side of CTranslate2 with a plain batcher behind our servicer: see `bench.peers.serve`."""
    threads = cores.available()
    choices: list[Settings] = [
        {"inter_threads": threads, "intra_threads": 1, "size": size, "wait_ms": wait_ms}
        for size in ((16,) if quick else (8, 32))
        for wait_ms in ((0, 2) if quick else (0, 2, 5))
    ]
    if not quick:
        choices.append({"inter_threads": 1, "intra_threads": threads, "size": 32, "wait_ms": 0})
    files = {"ctranslate2": model, "checkpoint": checkpoint, "bundle": bundle, "precision": precision}
    command = [sys.executable, "-m", "dragoman_server", "bench.peers.serve", *flags(files)]
    return Server(NAME, precision, choices, lambda settings: [*command, *flags(settings)])


class _InProcess:
    """A translator that takes and gives ids, as all others here, where CTranslate2 has pieces.

    The length that CTranslate2 divides a log-probability by counts no end-of-sentence token, while ours does. And
    it ends a search once `beam_size` hypotheses have ended; ours goes on while a live one scores better.
    """

    def __init__(self, model: Path, checkpoint: Checkpoint, precision: str, settings: Settings, beam_size: int) -> None:
        """Load a model that decodes `inter_threads` batches at a time; without `max_batch_size` all are one."""
        source, target = checkpoint.tokenizer_files()
        self._pieces = vocabulary(source)
        self._ids = {piece: index for index, piece in enumerate(vocabulary(target))}
        batching = {name: settings[name] for name in ("batch_type", "max_batch_size") if name in settings}
        self._search: dict[str, Any] = {"beam_size": beam_size, "length_penalty": 1, **batching}
        self._translator = ctranslate2.Translator(
            str(model),
            compute_type=_COMPUTE_TYPES[precision],
            inter_threads=settings["inter_threads"],
            intra_threads=settings["intra_threads"],
        )

    def translate(self, sentences: Sentences) -> list[list[int]]:
        pieces = [[self._pieces[index] for index in ids] for ids in sentences.sources]
        # One limit for all is the only one there is; where it matters, sentences that reach theirs are left out.
        limit = max(sentences.limits)
        results = self._translator.translate_batch(pieces, max_decoding_length=limit, **self._search)
        return [[self._ids[piece] for piece in result.hypotheses[0]] for result in results]

    def close(self) -> None:
        self._translator.unload_model()
