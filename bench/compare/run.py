"""A whole comparison: models, peers and parts in order, one outcome after another."""

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from bench.bleu import bleu
from bench.compare.inprocess import OFFLINE, SINGLE, Score, compare
from bench.compare.models import Model, base_model, default_model
from bench.compare.outcome import Outcome
from bench.compare.served import QUICK, Timing, compare_served, requests_of
from bench.log import Log
from bench.peers import ct2, ours
from bench.peers.contender import Program
from bench.peers.servers import ctranslate2_server, our_server
from dragoman.bundle import Bundle
from dragoman.tokenizer import Tokenizer

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


def run(plan: argparse.Namespace, work: Path, log: Log) -> Iterator[Outcome]:
    """Compare what the arguments of the command say."""
    for name in plan.models:
        log(f"{name}: making what is compared")
        if name == "base":
            model = base_model(plan.precision, work)
        else:
            model = default_model(plan.model_folder, plan.data, plan.precision, work)
        for peer, beam_size in product(plan.peers, plan.beam_sizes):
            if beam_size == 1 or peer == ct2.NAME:
                yield from _in_process(model, peer, beam_size, plan, log)
        if "served" in plan.parts and ct2.NAME in plan.peers and name in plan.served_models:
            yield from _served(model, plan, log)


def _in_process(model: Model, peer: str, beam_size: int, plan: argparse.Namespace, log: Log) -> Iterator[Outcome]:
    parts = zip((OFFLINE, SINGLE), _COUNTS[model.name, peer], strict=True)
    if not (wanted := [(part, count) for part, count in parts if part.name in plan.parts]):
        return
    programs = (
        ours.program(model.bundle, quick=plan.quick, beam_size=beam_size),
        _peer(model, peer, beam_size, plan),
    )
    name = model.name if beam_size == 1 else f"{model.name}, beam {beam_size}"
    rounds = plan.rounds if peer == ct2.NAME else min(plan.rounds, _FEW_ROUNDS)
    for part, count in wanted:
        some = model.pick(count // 4 if plan.quick else count)
        log(f"{name} {part.name}, {peer}: {len(some.sentences)} sentences")
        yield compare(part, name, programs, some.sentences, rounds, log, _score(some))


def _score(model: Model) -> Score | None:
    """Return what gives BLEU of the sentences that have a reference; None where none has."""
    places = [place for place, text in enumerate(model.texts) if text in model.references]
    if not places:
        return None
    tokenizer, references = Tokenizer.open(model.bundle), [model.references[model.texts[place]] for place in places]
    return lambda targets: bleu([tokenizer.decode(targets[place]) for place in places], references)


def _peer(model: Model, peer: str, beam_size: int, plan: argparse.Namespace) -> Program:
    if peer == ct2.NAME:
        theirs, precision = model.ctranslate2, plan.precision
        return ct2.program(theirs, model.checkpoint, precision, quick=plan.quick, beam_size=beam_size)
    from bench.peers import hugging_face  # here: torch takes seconds, and threads

    return hugging_face.program(model.checkpoint, quick=plan.quick)


def _served(model: Model, plan: argparse.Namespace, log: Log) -> Iterator[Outcome]:
    theirs = model.bundle, model.checkpoint.folder, model.ctranslate2
    servers = (
        our_server(model.bundle, plan.precision, quick=plan.quick),
        ctranslate2_server(*theirs, plan.precision, quick=plan.quick),
    )
    requests = requests_of(model.texts, Bundle.open(model.bundle).manifest.name, model.max_target_tokens)
    timing = QUICK if plan.quick else Timing()
    return compare_served(model.name, servers, requests, min(plan.rounds, _FEW_ROUNDS), timing, log)
