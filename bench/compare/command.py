"""The command `dragoman bench compare`: Dragoman beside CTranslate2, on the same weights.

    dragoman bench compare --data test.tsv.xz                                              all that needs no server
    dragoman bench compare --data test.tsv.xz --parts single --models default              some of it
    dragoman bench compare --data test.tsv.xz --parts served --models default              as servers
    dragoman bench compare --models base --parts offline --quick                           a first impression
    dragoman bench compare --data test.tsv.xz --parts offline --beam-sizes 1,2,4           beam search, speed and BLEU

Both sides are measured in one run and in turn, each at the best settings that a small sweep finds, with the same
weights and sentences; ratios are of neighbouring rounds. What Dragoman could remember of earlier requests
is switched off. In this process tokenizing is left out; served, both sides tokenize by the same code.

  offline     all sentences at once: sentences a second
  single      one sentence after another: median latency
  served      the highest rate of requests, one sentence each, of which 95 of 100 are answered within 5 times the
              latency of an idle server, ours and theirs; greedy. CTranslate2 stands behind the same gRPC servicer with
              a batcher that collects up to N sentences or W ms. Takes minutes a model

  default     the model of --model-folder, on the sentences of --data
  base        6+6 layers, width 512, vocabulary 32,000
  large       12+12 layers, width 1024, vocabulary 32,000
  opus-mt     6+6 layers, width 512, vocabulary 58,101
  nllb-600m   12+12 layers, width 1024, vocabulary 256,206; needs 6 GB of memory and 8 GB of disk

A beam has a length penalty of 1; CTranslate2's counts no end-of-sentence token, and it ends a search sooner: see
`bench.peers.ct2`. All but the default model have random weights, and 25 tokens in and out: these weights never end a
sentence by themselves. BLEU is of the sentences of --data that have a target.
"""

import argparse
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from bench.arguments import count, counts, input_file, some_of
from bench.bleu import bleu
from bench.compare.inprocess import OFFLINE, SINGLE, Score, compare
from bench.compare.models import Model, default_model, random_model
from bench.compare.outcome import Outcome, figures
from bench.compare.served import QUICK, Plan, compare_served
from bench.frame import ArgumentError, Figures, Log, log_with_time
from bench.peers import ct2, ours
from bench.peers.random_model import SHAPES
from dragoman.bundle import Manifest
from dragoman.tokenizer import Tokenizer
from dragoman.v1.translation_pb2 import TranslateOptions, TranslateTextRequest

IN_PROCESS = ("offline", "single")
PARTS = (*IN_PROCESS, "served")
MODELS = ("default", *SHAPES)

# Sentences of the offline part and of the single part, for some seconds a measurement.
_COUNTS = {"default": (2000, 200), "base": (256, 24), "large": (64, 8), "opus-mt": (256, 24), "nllb-600m": (64, 8)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", type=input_file, metavar="FILE", help="sentences: source<TAB>target or text lines; .gz, .xz")
    add("--model-folder", type=Path, default=Path("models/en-de"), metavar="DIR", help="default model (%(default)s)")
    parts = f"some of {','.join(PARTS)} ({','.join(IN_PROCESS)})"
    add("--parts", type=some_of(PARTS), default=IN_PROCESS, metavar="NAME,...", help=parts)
    models = f"some of {','.join(MODELS)} (default,base)"
    add("--models", type=some_of(MODELS), default=("default", "base"), metavar="NAME,...", help=models)
    add("--precision", choices=("int8", "fp32"), default="int8", help="of both sides (%(default)s)")
    add("--beam-sizes", type=counts, default=[1], metavar="N,...", help="1 is greedy decoding (1)")
    add("--rounds", type=count, default=5, metavar="N", help="measurements of each side (%(default)s)")
    add("--quick", action="store_true", help="fewer settings, fewer sentences and shorter loads")
    add("--work", type=Path, metavar="DIR", help="keep bundles and converted models here, and use those that are here")


def measure(arguments: argparse.Namespace) -> Figures:
    if "default" in arguments.models and arguments.data is None:
        raise ArgumentError("argument --data: the default model is measured on real sentences; give a file of them")
    if max(arguments.beam_sizes) > (most := ours.SLOTS[1]):
        raise ArgumentError(f"argument --beam-sizes: must be at most {most}")
    with tempfile.TemporaryDirectory(prefix="dragoman-compare-") as scratch:
        return figures(list(_outcomes(arguments, arguments.work or Path(scratch), log_with_time())))


def _outcomes(plan: argparse.Namespace, work: Path, log: Log) -> Iterator[Outcome]:
    for name in plan.models:
        log(f"{name}: making what is compared")
        if name == "default":
            model = default_model(plan.model_folder, plan.data, plan.precision, work / name)
        else:
            model = random_model(name, plan.precision, work / name, max(_COUNTS[name]))
        parts = zip((OFFLINE, SINGLE), _COUNTS[name], strict=True)
        for beam_size, (part, most) in product(plan.beam_sizes, parts):
            if part.name not in plan.parts:
                continue
            programs = (
                ours.program(model.bundle, quick=plan.quick, beam_size=beam_size),
                ct2.program(model.ctranslate2, model.checkpoint, plan.precision, quick=plan.quick, beam_size=beam_size),
            )
            title = name if beam_size == 1 else f"{name}, beam {beam_size}"
            some = model.pick(most // 4 if plan.quick else most)
            log(f"{title} {part.name}: {len(some.sentences)} sentences")
            yield compare(part, title, programs, some.sentences, plan.rounds, log, _score(some))
        if "served" in plan.parts:
            yield from _served(name, model, plan, log)


def _score(model: Model) -> Score | None:
    """Return what gives BLEU of the sentences that have a reference; None where none has."""
    places = [place for place, text in enumerate(model.texts) if text in model.references]
    if not places:
        return None
    tokenizer, references = Tokenizer.open(model.bundle), [model.references[model.texts[place]] for place in places]
    return lambda targets: bleu([tokenizer.decode(targets[place]) for place in places], references)


def _served(name: str, model: Model, plan: argparse.Namespace, log: Log) -> Iterator[Outcome]:
    theirs = model.ctranslate2, model.checkpoint.folder, model.bundle
    servers = (
        ours.server(model.bundle, plan.precision, quick=plan.quick),
        ct2.server(*theirs, plan.precision, quick=plan.quick),
    )
    served_name = Manifest.read(model.bundle).name
    requests = [
        TranslateTextRequest(model=served_name, contents=[text], options=TranslateOptions(max_target_tokens=limit))
        for text, limit in zip(model.texts, model.sentences.limits, strict=True)
    ]
    loads = Plan([request.SerializeToString() for request in requests], log, **(QUICK if plan.quick else {}))
    return compare_served(name, servers, plan.rounds, loads)
