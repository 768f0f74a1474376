"""Beam search beside CTranslate2: sentences a second, and BLEU, at each beam size.

    python -m bench.beam --data test.tsv.xz [--markdown OUT] [--json OUT]    everything
    python -m bench.beam --shapes base --beam-sizes 1,4 --quick              a first impression

  default   the model of --model-folder, on the sentences of --data, with BLEU against their targets
  base      6+6 layers, width 512, vocabulary 32,000, random weights; 25 tokens in and out

All sentences are there at once. Speed is measured as in `dragoman bench compare`: the same int8 weights and sentences,
in one run, in turn, each side at the best settings of a small sweep; a beam size is one comparison. The length
penalty is 1; CTranslate2's counts no end-of-sentence token, and it ends a search sooner: see `bench.peers.ct2`. The
random weights never end a sentence by themselves, so that every hypothesis of both sides goes on to the limit: the
end-of-sentence token is not among the best that a search looks at.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench.arguments import count, counts, input_file, make_parser, output_file, some_of
from bench.beam.measure import Found, Plan, measure
from bench.beam.models import referenced
from bench.beam.report import as_dict, as_markdown
from bench.compare.models import base_model
from bench.files import write_json, write_whole
from bench.load.texts import DataFileError
from bench.log import Log, log_with_time
from dragoman.arguments import Parser
from dragoman.exit_codes import EXIT_OK

# By name, the sentences that are measured: as many as in `dragoman bench compare`, for some seconds a measurement.
SHAPES: Final = {"default": 2000, "base": 256}
_PRECISION: Final = "int8"


def main(argv: list[str]) -> int:
    """Measure, and print a Markdown table."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if "default" in arguments.shapes and arguments.data is None:
        parser.error("argument --data: the default model is measured on real sentences; give a file of pairs")
    if (largest := max(arguments.beam_sizes)) > (fewest := min(arguments.slots)):
        parser.error(f"argument --slots: a beam of {largest} hypotheses takes as many slots, not {fewest}")
    try:
        with tempfile.TemporaryDirectory(prefix="dragoman-beam-") as scratch:
            found = list(_found(arguments, arguments.work or Path(scratch), log_with_time()))
    except DataFileError as error:
        parser.error(str(error))
    _report(found, arguments)
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = make_parser("python -m bench.beam", __doc__)
    add, names = parser.add_argument, tuple(SHAPES)
    add("--data", type=input_file, metavar="FILE", help="source<TAB>target lines of the default model; .gz, .xz")
    add("--model-folder", type=Path, default=Path("models/en-de"), metavar="DIR", help="default model (%(default)s)")
    add("--shapes", type=some_of(names), default=names, metavar="NAME,...", help=f"some of {','.join(names)} (all)")
    add("--beam-sizes", type=counts, default=[1, 2, 4], metavar="N,...", help="1 is greedy decoding (1,2,4)")
    add("--slots", type=counts, default=[32, 64], metavar="N,...", help="of a thread, that we may choose from (32,64)")
    add("--sentences", type=count, metavar="N", help="at most, of each shape (default 2000, base 256)")
    add("--rounds", type=count, default=5, metavar="N", help="measurements of each side (%(default)s)")
    add("--quick", action="store_true", help="try fewer settings of CTranslate2")
    add("--work", type=Path, metavar="DIR", help="keep bundles and converted models here, and use those that are here")
    add("--json", type=output_file, metavar="OUT", help="write all figures, with settings and sweeps, to this file")
    add("--markdown", type=output_file, metavar="OUT", help="write the table to this file")
    return parser


def _found(arguments: argparse.Namespace, work: Path, log: Log) -> Iterator[Found]:
    plan = Plan(arguments.beam_sizes, arguments.slots, arguments.rounds, arguments.quick)
    for shape in arguments.shapes:
        log(f"{shape}: making what is compared")
        at_most = arguments.sentences or SHAPES[shape]
        if shape == "base":
            model, references = base_model(_PRECISION, work).pick(at_most), None
        else:
            model, references = referenced(arguments.model_folder, arguments.data, _PRECISION, work, at_most)
        yield from measure(model, references, plan, log)


def _report(found: Sequence[Found], arguments: argparse.Namespace) -> None:
    table = as_markdown(found)
    print(table)
    if arguments.markdown:
        write_whole(arguments.markdown, f"{table}\n")
    write_json(arguments.json, as_dict(found, vars(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
