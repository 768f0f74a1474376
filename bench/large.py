"""What large models cost: random weights of their shapes, exported to int8, served, and timed beside CTranslate2.

    dragoman bench large [--shapes opus-mt,nllb-600m] [--json OUT]

  opus-mt     6+6 layers, width 512, vocabulary 58,101
  nllb-600m   12+12 layers, width 1024, vocabulary 256,206; needs 6 GB of memory and 8 GB of disk

Weights are drawn at random, output and embedding tied; both programs decode the same number of tokens. Sentences have
25 tokens in and out. Speed is measured as in `dragoman bench compare`: in one run, in turn, each at its best settings.
Linux only.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bench.arguments import count, some_of
from bench.compare import report
from bench.compare.inprocess import OFFLINE, SINGLE, Outcome, compare
from bench.compare.models import converted
from bench.frame import Figures
from bench.log import Log, log_with_time
from bench.memory import peak_resident_mib, resident_mib
from bench.peers import ct2, ours, random_model
from bench.peers.checkpoint import Checkpoint
from bench.peers.random_model import BASE
from bench.sentences import Sentences
from bench.server_process import running, serve_command
from dragoman import Client
from dragoman.errors import BundleError
from dragoman.tokenizer import Tokenizer

_TOKENS: Final = 25
_SEED: Final = 0
_LANGUAGES: Final = ("--source-language=en", "--target-language=de")
_MIB: Final = 2**20
_MB: Final = 10**6
_KIB: Final = 2**10  # in which Linux counts the memory of a process that has ended


@dataclass(frozen=True)
class Shape:
    """A model without weights.

    Attributes:
        sentences: that are translated at once, and one by one.
        limits: what is promised of figures of `cost_of`, by their names.
    """

    name: str
    config: Mapping[str, Any]
    sentences: tuple[int, int]
    limits: Mapping[str, float]


def _config(vocabulary: int, **fields: Any) -> dict[str, Any]:
    sizes = {"source_vocabulary_size": vocabulary, "target_vocabulary_size": vocabulary}
    return {**BASE, **sizes, "tie_output": True, **fields}


SHAPES: Final[Mapping[str, Shape]] = {
    shape.name: shape
    for shape in (
        Shape("opus-mt", _config(58_101, activation="silu"), (256, 24), {"bundle_mb": 110}),
        Shape(
            "nllb-600m",
            _config(256_206, d_model=1024, heads=16, d_ff=4096, encoder_layers=12, decoder_layers=12),
            (64, 8),
            {"bundle_mb": 1000, "export_peak_mb": 6000, "resident_mb": 1500, "first_answer_s": 3},
        ),
    )
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add, names = parser.add_argument, tuple(SHAPES)
    add("--shapes", type=some_of(names), default=names, metavar="NAME,...", help=f"some of {','.join(names)} (all)")
    add("--rounds", type=count, default=5, metavar="N", help="measurements of each side (%(default)s)")


def measure(arguments: argparse.Namespace) -> Figures:
    log = log_with_time()
    shapes = [SHAPES[name] for name in arguments.shapes]
    found = [examine(shape, arguments.rounds, log) for shape in shapes]
    outcomes = [outcome for _, both in found for outcome in both]
    return {
        "costs": [_row(shape, cost) for shape, (cost, _) in zip(shapes, found, strict=True)],
        "speed": report.rows(outcomes),
        "details": {
            "models": [{**asdict(shape), **cost} for shape, (cost, _) in zip(shapes, found, strict=True)],
            "outcomes": report.details(outcomes),
        },
    }


def _row(shape: Shape, cost: Figures) -> Figures:
    """Write the costs, with what is promised in brackets."""
    promised = {name: f" (at most {limit:g})" for name, limit in shape.limits.items()}
    return {
        "model": shape.name,
        **{name: f"{value:.1f}{promised.get(name, '')}" for name, value in cost.items()},
    }


def examine(shape: Shape, rounds: int, log: Log) -> tuple[Figures, list[Outcome]]:
    """Make a model of a shape in a scratch folder, and measure all of it."""
    config = dict(shape.config)
    with tempfile.TemporaryDirectory(prefix="dragoman-large-") as scratch:
        folder, bundle = Path(scratch) / "checkpoint", Path(scratch) / "bundle"
        log(f"{shape.name}: drawing the weights")
        random_model.write_checkpoint(folder, config, _TOKENS, _SEED)
        at_once, one_by_one = shape.sentences
        texts = random_model.sentences(config, _TOKENS, at_once, _SEED)
        log(f"{shape.name}: exporting, serving")
        cost = cost_of(folder, bundle, texts[0])
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
    return cost, outcomes


def cost_of(checkpoint: Path, out: Path, text: str) -> Figures:
    """Export a checkpoint to int8 in a process of its own, serve the bundle, and translate a text.

    Returns:
        Megabytes are millions of bytes. The export includes its parity check; the first answer counts from before
        `dragoman serve` was started, and memory is that after it.
    """
    start_s = time.monotonic()
    peak_mb = _export(checkpoint, out)
    export_s = time.monotonic() - start_s
    start_s = time.monotonic()
    with running(serve_command("--models", out)) as server:
        with Client(server.address) as client:
            client.translate(text, source_language="en", target_language="de")
        first_answer_s = time.monotonic() - start_s
        resident, peak = (read(server.process.pid) * _MIB / _MB for read in (resident_mib, peak_resident_mib))
    return {
        "checkpoint_mb": _size_mb(checkpoint / "model.safetensors"),
        "export_peak_mb": peak_mb,
        "export_s": export_s,
        "bundle_mb": sum(map(_size_mb, out.iterdir())),
        "first_answer_s": first_answer_s,
        "resident_mb": resident,
        "server_peak_mb": peak,
    }


def _export(checkpoint: Path, out: Path) -> float:
    """Run `dragoman export`; gives the most megabytes that it held."""
    command = [sys.executable, "-m", "dragoman.cli", "export", str(checkpoint), *_LANGUAGES, "--out", str(out)]
    process = subprocess.Popen(command, stdout=sys.stderr)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise BundleError(f"{checkpoint}: dragoman export failed with exit code {process.returncode}")
    return usage.ru_maxrss * _KIB / _MB


def _size_mb(file: Path) -> float:
    return file.stat().st_size / _MB
