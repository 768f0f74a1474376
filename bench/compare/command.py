"""The command `dragoman bench compare`: Dragoman beside other programs that run the same weights.

    dragoman bench compare --data test.tsv.xz --plot compare.png --results RESULTS.md    everything
    dragoman bench compare --data test.tsv.xz --parts offline,single --models default    some of it
    dragoman bench compare --models base --peers ctranslate2 --parts offline --quick     a first impression
    dragoman bench compare --data test.tsv.xz --parts offline --beam-sizes 1,2,4         beam search, speed and BLEU

Both sides are measured in one run and in turn, each at the best settings that a small sweep finds, with the same
weights and sentences; ratios are of neighbouring rounds. What Dragoman could remember of earlier requests
is switched off. In process tokenizing is left out; served, both sides tokenize by the same code.

  offline   all sentences at once: sentences a second
  single    one sentence after another: median latency
  served    the highest rate of requests, one sentence each, of which 95 of 100 are answered within 5 times the
            latency of an idle server; CTranslate2 stands behind the same gRPC servicer with a batcher that collects
            up to N sentences or W ms

  default   the model of --model-folder, on the sentences of --data
  base      6+6 layers, width 512, vocabulary 32,000, random weights; 25 tokens in and out

Servers and transformers decode greedily. A beam has a length penalty of 1; CTranslate2's counts no end-of-sentence
token, and it ends a search sooner: see `bench.peers.ct2`. The random weights never end a sentence by themselves, so
every hypothesis of both sides goes on to the limit. BLEU is of the sentences of --data that have a target.
"""

import argparse
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from bench import frame
from bench.arguments import count, counts, input_file, output_file, some_of
from bench.bleu import bleu
from bench.compare import report
from bench.compare.inprocess import OFFLINE, SINGLE, Score, compare
from bench.compare.models import Model, base_model, default_model
from bench.compare.outcome import Outcome
from bench.compare.served import QUICK, Timing, compare_served
from bench.frame import ArgumentError, Figures
from bench.load.texts import requests_of
from bench.log import Log, log_with_time
from bench.peers import ct2, ours
from bench.peers.contender import Program
from bench.peers.servers import ctranslate2_server, our_server
from dragoman.bundle import Manifest
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", type=input_file, metavar="FILE", help="sentences: source<TAB>target or text lines; .gz, .xz")
    add("--model-folder", type=Path, default=Path("models/en-de"), metavar="DIR", help="default model (%(default)s)")
    for name, known in (("parts", PARTS), ("models", MODELS), ("peers", PEERS)):
        text = ",".join(known)
        add(f"--{name}", type=some_of(known), default=known, metavar="NAME,...", help=f"some of {text} (all)")
    served = ("default",)  # searching rates takes minutes a model
    add("--served-models", type=some_of(MODELS), default=served, metavar="NAME,...", help="as servers (default)")
    add("--precision", choices=("int8", "fp32"), default="int8", help="transformers run in fp32 (%(default)s)")
    add("--beam-sizes", type=counts, default=[1], metavar="N,...", help="beside CTranslate2; 1 is greedy decoding (1)")
    add("--rounds", type=count, default=5, metavar="N", help="measurements of each side (%(default)s)")
    add("--quick", action="store_true", help="fewer settings and shorter measurements")
    add("--work", type=Path, metavar="DIR", help="keep bundles and converted models here, and use those that are here")
    add("--plot", type=output_file, metavar="OUT", help="draw the ratios into this PNG")
    add("--results", type=output_file, metavar="OUT", help="append the table to this file")


def measure(arguments: argparse.Namespace) -> Figures:
    if "default" in arguments.models and arguments.data is None:
        raise ArgumentError("argument --data: the default model is measured on real sentences; give a file of them")
    if max(arguments.beam_sizes) > (most := min(ours.BEAM_SLOTS)):
        raise ArgumentError(f"argument --beam-sizes: must be at most {most}")
    with tempfile.TemporaryDirectory(prefix="dragoman-compare-") as scratch:
        outcomes = list(_outcomes(arguments, arguments.work or Path(scratch), log_with_time()))
    figures = report.figures(outcomes)
    if arguments.results:
        with arguments.results.open("a", encoding="utf-8") as file:
            file.write(f"\n{frame.as_markdown(figures)}\n")
    if arguments.plot and outcomes:
        from bench.compare.plot import plot  # here: matplotlib takes a second

        plot(outcomes, arguments.plot)
    return figures


def _outcomes(plan: argparse.Namespace, work: Path, log: Log) -> Iterator[Outcome]:
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
    if not (wanted := [(part, most) for part, most in parts if part.name in plan.parts]):
        return
    programs = (
        ours.program(model.bundle, quick=plan.quick, beam_size=beam_size),
        _peer(model, peer, beam_size, plan),
    )
    name = model.name if beam_size == 1 else f"{model.name}, beam {beam_size}"
    rounds = plan.rounds if peer == ct2.NAME else min(plan.rounds, _FEW_ROUNDS)
    for part, most in wanted:
        some = model.pick(most // 4 if plan.quick else most)
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
    requests = requests_of(model.texts, Manifest.read(model.bundle).name, max_target_tokens=model.max_target_tokens)
    timing = QUICK if plan.quick else Timing()
    return compare_served(model.name, servers, requests, min(plan.rounds, _FEW_ROUNDS), timing, log)
