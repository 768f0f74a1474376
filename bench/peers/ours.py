"""Dragoman's own engine as a side of a comparison, in this process, with nothing remembered between sentences."""

from pathlib import Path

from bench.peers.contender import Program, Server, Settings, flags
from bench.sentences import Sentences
from bench.server_process import NOTHING_FREE, serve_command
from dragoman.bundle import Bundle
from plugins.offline.engine import OfflineEngine
from service import cores
from service.decode import FinishReason
from service.options import Decoding

NAME = "dragoman"
# Of a thread; a beam of N hypotheses takes N of them, and has the last three. A quick sweep has two of those.
SLOTS = (16, 32, 64, 128)


def program(folder: Path, *, quick: bool = False, beam_size: int = 1) -> Program:
    """Make a side of the engine on a bundle, and the settings worth a try; a beam size of 1 is greedy decoding."""
    threads = cores.available()
    first = int(beam_size > 1)
    slots = SLOTS[first + 1 : first + 3] if quick else SLOTS[first:]
    bundle, decoding = Bundle.open(folder), Decoding(beam_size=beam_size)
    return Program(
        NAME,
        bundle.manifest.precision,
        offline=[
            {"threads": threads, "run_threads": cores_of_run, "slots": count}
            for cores_of_run in (1, threads)
            for count in slots
        ],
        single=[{"threads": 1, "run_threads": cores_of_run, "slots": beam_size} for cores_of_run in (1, threads)],
        open=lambda settings: _InProcess(bundle, settings, decoding),
    )


def server(bundle: Path, precision: str, *, quick: bool = False) -> Server:
    """Make a side of `dragoman serve`, which decodes each sentence to its end, however long that had to wait."""
    command = serve_command("--models", bundle, "--max-delay-s", "0", "--no-stop-repetition", *NOTHING_FREE)
    choices = [{"threads": cores.available(), "slots": slots} for slots in ((32,) if quick else (8, 16, 32))]
    return Server(NAME, precision, choices, lambda settings: [*command, *flags(settings)])


def ended_by_model(folder: Path, sentences: Sentences) -> list[int]:
    """Find the places of the sentences whose translation the model ends by itself, in one run over all."""
    bundle = Bundle.open(folder)
    decodes = sentences.decodes()
    OfflineEngine(bundle).decode(decodes)
    return [place for place, decode in enumerate(decodes) if decode.finish_reason is FinishReason.EOS]


class _InProcess:
    def __init__(self, bundle: Bundle, settings: Settings, decoding: Decoding) -> None:
        self._decoding = decoding
        self._engine = OfflineEngine(bundle, **settings)

    def translate(self, sentences: Sentences) -> list[list[int]]:
        decodes = sentences.decodes(self._decoding)
        self._engine.decode(decodes)
        return [decode.target_ids for decode in decodes]

    def close(self) -> None:
        self._engine.close()
