"""A whole comparison: models, peers and parts in order, one outcome after another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.compare.inprocess import OFFLINE, SINGLE, Outcome, compare
from bench.compare.models import Model, base_model, default_model
from bench.compare.served import QUICK, Timing, compare_served, requests_of
from bench.log import Log
from bench.peers import ct2, ours
from bench.peers.contender import Program
from bench.peers.servers import ctranslate2_server, our_server
from dragoman.bundle import Bundle

PARTS = ("offline", "single", "served")
MODELS = ("default", "base")
PEERS = ("ctranslate2", "transformers")

# Sentences of the offline part and of the single part, for some seconds a measurement.
_COUNTS = {
    ("default", "ctranslate2"): (2000, 200),
    ("default", "transformers"): (256, 32),
    ("base", "ctranslate2"): (256, 24),
    ("base", "transformers"): (64, 8),
}
# A round of servers is a search of several loads, a round of transformers is slow: some are enough.
_FEW_ROUNDS = 3


@dataclass(frozen=True)
class Plan:
    """What to compare.

    Attributes:
        precision: int8 or fp32, of ours and of CTranslate2; transformers run in fp32.
        data: its sentences; None where it is not compared.
    """

    parts: Sequence[str]
    models: Sequence[str]
    served_models: Sequence[str]
    peers: Sequence[str]
    precision: str
    rounds: int
    quick: bool
    model_folder: Path
    data: Path | None


def run(plan: Plan, work: Path, log: Log) -> Iterator[Outcome]:
    """Compare.

    Raises:
        BundleError: a bundle cannot be read or made.
        DataFileError: the sentences cannot be read.
        ServerError: a server did not start, or holds no rate.
    """
    for name in plan.models:
        log(f"{name}: making what is compared")
        model = _model(name, plan, work)
        for peer in plan.peers:
            yield from _in_process(model, peer, plan, log)
        if "served" in plan.parts and ct2.NAME in plan.peers and name in plan.served_models:
            yield from _served(model, plan, log)


def _model(name: str, plan: Plan, work: Path) -> Model:
    if name == "base":
        return base_model(plan.precision, work)
    if plan.data is None:
        raise ValueError("the default model needs data")
    return default_model(plan.model_folder, plan.data, plan.precision, work)


def _in_process(model: Model, peer: str, plan: Plan, log: Log) -> Iterator[Outcome]:
    parts = [
        (part, count)
        for part, count in zip((OFFLINE, SINGLE), _COUNTS[model.name, peer], strict=True)
        if part.name in plan.parts
    ]
    if not parts:
        return
    programs = ours.program(model.bundle, quick=plan.quick), _peer(model, peer, plan)
    rounds = plan.rounds if peer == ct2.NAME else min(plan.rounds, _FEW_ROUNDS)
    for part, count in parts:
        sentences = model.sentences.pick(count // 4 if plan.quick else count)
        log(f"{model.name} {part.name}, {peer}: {len(sentences)} sentences")
        yield compare(part, model.name, programs, sentences, rounds, log)


def _peer(model: Model, peer: str, plan: Plan) -> Program:
    if peer == ct2.NAME:
        return ct2.program(model.ctranslate2, model.checkpoint, plan.precision, quick=plan.quick)
    from bench.peers import hugging_face  # here: torch takes seconds, and threads

    return hugging_face.program(model.checkpoint, quick=plan.quick)


def _served(model: Model, plan: Plan, log: Log) -> Iterator[Outcome]:
    checkpoint = model.checkpoint.folder
    return compare_served(
        model.name,
        (
            our_server(model.bundle, plan.precision, quick=plan.quick),
            ctranslate2_server(model.bundle, checkpoint, model.ctranslate2, plan.precision, quick=plan.quick),
        ),
        requests_of(model.texts, Bundle.open(model.bundle).manifest.name, model.max_target_tokens),
        min(plan.rounds, _FEW_ROUNDS),
        QUICK if plan.quick else Timing(),
        log,
    )
