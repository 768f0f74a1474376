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
from pathlib import Path

from bench import frame
from bench.arguments import count, counts, input_file, output_file, some_of
from bench.compare import report
from bench.compare.run import MODELS, PARTS, PEERS, run
from bench.frame import ArgumentError, Figures
from bench.log import log_with_time
from bench.peers import ours


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
        outcomes = list(run(arguments, arguments.work or Path(scratch), log_with_time()))
    figures = report.figures(outcomes)
    if arguments.results:
        with arguments.results.open("a", encoding="utf-8") as file:
            file.write(f"\n{frame.as_markdown(figures)}\n")
    if arguments.plot and outcomes:
        from bench.compare.plot import plot  # here: matplotlib takes a second

        plot(outcomes, arguments.plot)
    return figures
