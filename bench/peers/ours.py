"""Dragoman's own engine as a side of a comparison, in this process, with nothing remembered between sentences."""

from pathlib import Path

from bench.peers.contender import Program, Settings
from bench.sentences import Sentences
from dragoman.bundle import Bundle
from service import cores
from service.decode import Decode, FinishReason
from service.engine.offline import OfflineEngine

NAME = "dragoman"


def program(folder: Path, *, quick: bool = False) -> Program:
    """Make a side of the engine on a bundle, and the settings worth a try.

    Args:
        folder: of the bundle.
        quick: offer fewer settings.
    """
    threads = cores.available()
    slots = [32] if quick else [16, 32, 64]
    bundle = Bundle.open(folder)
    return Program(
        NAME,
        bundle.manifest.precision,
        offline=[{"threads": threads, "slots": count} for count in slots],
        single=[{"threads": 1, "slots": 1}],
        open=lambda settings: _InProcess(bundle, settings),
    )


def ended_by_model(folder: Path, sentences: Sentences) -> list[int]:
    """Find the places of the sentences whose translation the model ends by itself, in one run over all."""
    bundle = Bundle.open(folder)
    decodes = sentences.decodes()
    OfflineEngine(bundle).decode(decodes)
    return [place for place, decode in enumerate(decodes) if decode.finish_reason is FinishReason.EOS]


class _InProcess:
    """An engine in this process."""

    def __init__(self, bundle: Bundle, settings: Settings) -> None:
        self._engine = OfflineEngine(bundle, threads=settings["threads"], slots=settings["slots"])

    def translate(self, sentences: Sentences) -> list[list[int]]:
        decodes = sentences.decodes()
        self._engine.decode(decodes)
        return [decode.target_ids for decode in decodes]

    def translate_one(self, source: list[int], limit: int) -> list[int]:
        decode = Decode(source, limit)
        self._engine.decode([decode])
        return decode.target_ids

    def close(self) -> None:
        self._engine.close()
