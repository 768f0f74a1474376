"""What large models cost: random weights of their shapes, exported to int8, served, and timed beside CTranslate2.

    python -m bench.large [--shapes opus-mt,nllb-600m] [--json OUT] [--markdown OUT]

  opus-mt     6+6 layers, width 512, vocabulary 58,101
  nllb-600m   12+12 layers, width 1024, vocabulary 256,206; needs 6 GB of memory and 8 GB of disk

Weights are drawn at random, output and embedding tied; both programs decode the same number of tokens. Sentences have
25 tokens in and out. Speed is measured as in `dragoman bench compare`: in one run, in turn, each at its best settings.
Linux only.
"""

import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bench.arguments import count, make_parser, output_file, some_of
from bench.compare import report
from bench.compare.inprocess import OFFLINE, SINGLE, Outcome, compare
from bench.compare.models import converted
from bench.files import write_json, write_whole
from bench.large.cost import Cost, measure
from bench.large.shapes import SHAPES, Shape
from bench.log import Log, log_with_time
from bench.peers import ct2, ours, random_model
from bench.peers.checkpoint import Checkpoint
from bench.sentences import Sentences
from bench.server_process import ServerError
from dragoman.exit_codes import EXIT_FAILED, EXIT_OK
from dragoman.tokenizer import Tokenizer

_TOKENS: Final = 25
_SEED: Final = 0


@dataclass(frozen=True)
class Found:
    """What was found out about a shape."""

    shape: Shape
    cost: Cost
    outcomes: Sequence[Outcome]


def main(argv: list[str]) -> int:
    """Measure, and print a Markdown table."""
    parser = make_parser("python -m bench.large", __doc__)
    add, names = parser.add_argument, tuple(SHAPES)
    add("--shapes", type=some_of(names), default=names, metavar="NAME,...", help=f"some of {','.join(names)} (all)")
    add("--rounds", type=count, default=5, metavar="N", help="measurements of each side (%(default)s)")
    add("--json", type=output_file, metavar="OUT", help="write all figures, with settings and sweeps, to this file")
    add("--markdown", type=output_file, metavar="OUT", help="write the tables to this file")
    arguments = parser.parse_args(argv)
    log = log_with_time()
    try:
        found = [examine(SHAPES[name], arguments.rounds, log) for name in arguments.shapes]
    except ServerError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return EXIT_FAILED
    table = as_markdown(found)
    print(table)
    if arguments.markdown:
        write_whole(arguments.markdown, f"{table}\n")
    write_json(arguments.json, as_dict(found, vars(arguments)))
    return EXIT_OK


def examine(shape: Shape, rounds: int, log: Log) -> Found:
    """Make a model of a shape in a scratch folder, and measure all of it.

    Raises:
        BundleError: the export failed.
        ServerError: the server did not start.
    """
    config = dict(shape.config)
    with tempfile.TemporaryDirectory(prefix="dragoman-large-") as scratch:
        folder, bundle = Path(scratch) / "checkpoint", Path(scratch) / "bundle"
        log(f"{shape.name}: drawing the weights")
        random_model.write_checkpoint(folder, config, _TOKENS, _SEED)
        at_once, one_by_one = shape.sentences
        texts = random_model.sentences(config, _TOKENS, at_once, _SEED)
        log(f"{shape.name}: exporting, serving")
        cost = measure(folder, bundle, texts[0])
        log(f"{shape.name}: {cost}")
        checkpoint, tokenizer = Checkpoint.open(folder), Tokenizer.open(bundle)
        theirs = converted(checkpoint, Path(scratch))
        checkpoint.weights.clear()  # gigabytes
        sources = [[*tokenizer.encode(text), config["eos_id"]] for text in texts]
        sentences = Sentences(sources, [_TOKENS] * len(sources))
        programs = ours.program(bundle, quick=True), ct2.program(theirs, checkpoint, "int8", quick=True)
        outcomes = [
            compare(part, shape.name, programs, sentences.pick(size), rounds, log)
            for part, size in ((OFFLINE, at_once), (SINGLE, one_by_one))
        ]
    return Found(shape, cost, outcomes)


def as_markdown(found: Iterable[Found]) -> str:
    """Write a table of the costs, with what is promised in brackets, and one of the speed."""
    found = list(found)
    head = ["model", *Cost.__dataclass_fields__]
    costs = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *map(_row, found))]
    return "\n".join([*costs, "", report.as_markdown([outcome for one in found for outcome in one.outcomes])])


def as_dict(found: Iterable[Found], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return everything: costs, limits, every round."""
    found = list(found)
    models = [
        {"model": one.shape.name, "config": one.shape.config, **asdict(one.cost), "limits": one.shape.limits}
        for one in found
    ]
    return {**report.as_dict([outcome for one in found for outcome in one.outcomes], arguments), "models": models}


def _row(one: Found) -> list[str]:
    return [one.shape.name, *(_cell(name, value, one.shape) for name, value in asdict(one.cost).items())]


def _cell(name: str, value: float, shape: Shape) -> str:
    limit = shape.limits.get(name)
    return f"{value:.1f}" if limit is None else f"{value:.1f} (at most {limit:g})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
