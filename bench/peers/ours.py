"""Dragoman's own engine as a side of a comparison, in this process, with nothing remembered between sentences."""

import threading
from pathlib import Path

from bench.peers.contender import Program, Sentences, Settings
from dragoman.bundle import Bundle
from service import cores
from service.engine.engine import Engine
from service.queue.mailbox import Mailbox
from service.segment import FinishReason, Segment
from service.telemetry.metrics import Metrics

NAME = "dragoman"
_QUEUE_TOKENS = 10_000_000  # nothing is refused here


def program(folder: Path, *, quick: bool = False) -> Program:
    """The engine on a bundle, and the settings worth a try.

    Args:
        folder: of the bundle.
        quick: offer fewer settings.
    """
    threads = cores.available()
    slots = [32] if quick else [16, 32, 64]
    single = [1] if quick else sorted({1, threads})
    bundle = Bundle.open(folder)
    return Program(
        NAME,
        bundle.manifest.precision,
        offline=[{"threads": threads, "slots": count} for count in slots],
        single=[{"threads": count, "slots": 1} for count in single],
        open=lambda settings: _InProcess(bundle, settings),
    )


def ended_by_model(folder: Path, sentences: Sentences) -> list[int]:
    """The places of the sentences whose translation the model ends by itself, in one run over all."""
    bundle = Bundle.open(folder)
    mailbox = Mailbox(_QUEUE_TOKENS)
    engine = Engine(bundle, mailbox, Metrics(), device="cpu", threads=0, slots=32)
    segments = _segments(sentences)
    engine.decode(segments)
    return [place for place, segment in enumerate(segments) if segment.finish_reason is FinishReason.EOS]


def _segments(sentences: Sentences) -> list[Segment]:
    return [Segment(ids, limit) for ids, limit in zip(sentences.sources, sentences.limits, strict=True)]


class _InProcess:
    """An engine whose threads run only while single sentences are asked for."""

    def __init__(self, bundle: Bundle, settings: Settings) -> None:
        self._mailbox = Mailbox(_QUEUE_TOKENS)
        self._engine = Engine(
            bundle, self._mailbox, Metrics(), device="cpu", threads=settings["threads"], slots=settings["slots"]
        )
        self._started = False

    def translate(self, sentences: Sentences) -> list[list[int]]:
        segments = _segments(sentences)
        self._engine.decode(segments)
        return [segment.target_ids for segment in segments]

    def translate_one(self, source: list[int], limit: int) -> list[int]:
        if not self._started:
            self._engine.start()
            self._started = True
        ended = threading.Event()
        segment = Segment(source, limit, on_progress=lambda _: ended.set())
        self._mailbox.submit([segment])
        ended.wait()
        if segment.error is not None:
            raise segment.error
        return segment.target_ids

    def close(self) -> None:
        self._engine.stop()
