"""What large models cost: random weights of their shapes, exported to int8, served, and timed beside CTranslate2.

    dragoman bench large [--shapes opus-mt,nllb-600m] [--json OUT]

  opus-mt     6+6 layers, width 512, vocabulary 58,101
  nllb-600m   12+12 layers, width 1024, vocabulary 256,206; needs 6 GB of memory and 8 GB of disk

Weights are drawn at random, output and embedding tied; both programs decode the same number of tokens. Sentences have
25 tokens in and out. Speed is measured as in `dragoman bench compare`: in one run, in turn, each at its best settings.
Linux only.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench import frame
from bench.arguments import count, some_of
from bench.compare import report
from bench.compare.inprocess import OFFLINE, SINGLE, compare
from bench.compare.models import TOKENS, random_weights
from bench.compare.outcome import Outcome
from bench.exported import bundle_folder, export
from bench.frame import Figures
from bench.log import Log, log_with_time
from bench.memory import peak_resident_mib, resident_mib
from bench.peers import ct2, ours, random_model
from bench.peers.random_model import BASE
from bench.server_process import running, serve_command
from dragoman import Client

_PRECISION: Final = "int8"
_SEED: Final = 0
_MIB: Final = 2**20
_MB: Final = 10**6


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
    costs, outcomes, log = list[Figures](), list[Outcome](), log_with_time()
    for shape in (SHAPES[name] for name in arguments.shapes):
        with tempfile.TemporaryDirectory(prefix="dragoman-large-") as scratch:
            folder = Path(scratch)
            log(f"{shape.name}: drawing the weights")
            random_model.write_checkpoint(folder / "checkpoint", dict(shape.config), TOKENS, _SEED)
            log(f"{shape.name}: exporting, serving")
            costs.append({"model": shape.name, **cost_of(shape, folder)})
            log(frame.as_text(costs[-1]))
            outcomes += compared(shape, folder, arguments.rounds, log)
    return {
        "costs": [_with_limits(row) for row in costs],
        "speed": report.rows(outcomes),
        "details": {"costs": costs, "outcomes": report.details(outcomes)},
    }


def _with_limits(costs: Figures) -> Figures:
    """Write costs with what is promised in brackets."""
    limits = SHAPES[costs["model"]].limits
    said = {name: f" (at most {limit:g})" for name, limit in limits.items()}
    return {
        name: f"{value:.1f}{said.get(name, '')}" if isinstance(value, float) else value for name, value in costs.items()
    }


def compared(shape: Shape, folder: Path, rounds: int, log: Log) -> list[Outcome]:
    """Compare the speed of a model whose checkpoint and bundle are in a folder."""
    at_once, one_by_one = shape.sentences
    model = random_weights(shape.name, folder, _PRECISION, at_once)
    programs = (
        ours.program(model.bundle, quick=True),
        ct2.program(model.ctranslate2, model.checkpoint, _PRECISION, quick=True),
    )
    model.checkpoint.weights.clear()  # gigabytes
    return [
        compare(part, shape.name, programs, model.sentences.pick(size), rounds, log)
        for part, size in ((OFFLINE, at_once), (SINGLE, one_by_one))
    ]


def cost_of(shape: Shape, folder: Path) -> Figures:
    """Export a checkpoint in a process of its own, serve the bundle, and translate a text.

    Returns:
        Megabytes are millions of bytes. The export includes its parity check; the first answer counts from before
        `dragoman serve` was started, and memory is that after it.
    """
    bundle, checkpoint = bundle_folder(folder, _PRECISION), folder / "checkpoint"
    [text] = random_model.sentences(dict(shape.config), TOKENS, 1, _SEED)
    start_s = time.monotonic()
    export_peak_bytes = export(checkpoint, _PRECISION, bundle)
    export_s = time.monotonic() - start_s
    start_s = time.monotonic()
    with running(serve_command("--models", bundle)) as server:
        with Client(server.address) as client:
            client.translate(text, source_language="en", target_language="de")
        first_answer_s = time.monotonic() - start_s
        resident, peak = (read(server.process.pid) * _MIB / _MB for read in (resident_mib, peak_resident_mib))
    return {
        "checkpoint_mb": _size_mb(checkpoint / "model.safetensors"),
        "export_peak_mb": export_peak_bytes / _MB,
        "export_s": export_s,
        "bundle_mb": sum(map(_size_mb, bundle.iterdir())),
        "first_answer_s": first_answer_s,
        "resident_mb": resident,
        "server_peak_mb": peak,
    }


def _size_mb(file: Path) -> float:
    return file.stat().st_size / _MB
