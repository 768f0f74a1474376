"""The beam sizes of one model, one after another: both sides timed in turn, and the quality of what they wrote."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bench.bleu import bleu
from bench.compare.inprocess import OFFLINE, Outcome, compare
from bench.compare.models import Model
from bench.log import Log
from bench.peers import ct2, ours
from bench.peers.contender import Program, Settings
from dragoman.bundle import Bundle
from dragoman.tokenizer import Tokenizer

Scores = tuple[float | None, float | None]  # of both sides, ours first

NO_BLEU: Final[Scores] = (None, None)


@dataclass(frozen=True)
class Plan:
    """How to measure."""

    beam_sizes: Sequence[int]
    slots: Sequence[int]
    rounds: int
    quick: bool


@dataclass(frozen=True)
class Found:
    """What was found out about a beam size."""

    shape: str
    beam_size: int
    sentences: int
    outcome: Outcome
    bleu: Scores = NO_BLEU


def measure(model: Model, references: Sequence[str] | None, plan: Plan, log: Log) -> Iterator[Found]:
    """Measure all beam sizes."""
    precision, sentences = Bundle.open(model.bundle).manifest.precision, model.sentences
    for beam_size in plan.beam_sizes:
        name = f"{model.name}, beam {beam_size}"
        log(f"{name}: {len(sentences)} sentences")
        programs = (
            ours.program(model.bundle, beam_size=beam_size, slots=plan.slots),
            ct2.program(model.ctranslate2, model.checkpoint, precision, quick=plan.quick, beam_size=beam_size),
        )
        outcome = compare(OFFLINE, name, programs, sentences, plan.rounds, log)
        scores = NO_BLEU
        if references is not None:
            scores = (
                _bleu(programs[0], outcome.settings[0], model, references),
                _bleu(programs[1], outcome.settings[1], model, references),
            )
        yield Found(model.name, beam_size, len(sentences), outcome, scores)


def _bleu(program: Program, settings: Settings, model: Model, references: Sequence[str]) -> float | None:
    """Translate all sentences once more, under the settings that were timed."""
    contender = program.open(settings)
    try:
        targets = contender.translate(model.sentences)
    finally:
        contender.close()
    tokenizer = Tokenizer.open(model.bundle)
    return bleu([tokenizer.decode(ids) for ids in targets], references)
