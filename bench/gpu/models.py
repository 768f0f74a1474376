"""The models that `bench.gpu` measures with, made on the machine that they are measured on."""

from pathlib import Path
from typing import Any, Final

from bench.exported import exported
from bench.frame import Figures
from bench.gpu.task import Task
from bench.load.texts import read_pairs
from bench.peers import random_model
from dragoman.bundle import Bundle

# Twice as wide and deep as "base": 12+12 layers, about 0.5 billion parameters.
_LARGE: Final[dict[str, Any]] = random_model.BASE | {
    "d_model": 1024,
    "heads": 16,
    "d_ff": 4096,
    "encoder_layers": 12,
    "decoder_layers": 12,
}
RANDOM: Final = {"base": random_model.BASE, "large": _LARGE}
SIZES: Final = ("default", *RANDOM)
TOKENS: Final = 25  # of a sentence of a random model, its end counted, and of its translation
_SEED: Final = 1


def models(task: Task) -> Figures:
    """Make what is not there: bundles in fp16 and, of the default model, fp32, and the model of CTranslate2."""
    task.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = checkpoint_folder(task)
    precisions = ("fp16",) if task.size in RANDOM else ("fp16", "fp32")
    # Compared with one sentence of the checkpoint: the part `parity` compares the rest, on the device.
    pair, data = task.folder / "pair.tsv", checkpoint / "parity.tsv" if task.size in RANDOM else task.setup.data
    [source], [target] = read_pairs(data, 1)
    pair.write_text(f"{source}\t{target}\n", encoding="utf-8")
    figures: Figures = {precision: str(exported(checkpoint, precision, task.folder, pair)) for precision in precisions}
    task.note(figures)  # CTranslate2 may not be installed
    return {**figures, "ctranslate2": str(_converted(task, checkpoint))}


def bundle_folder(task: Task, precision: str = "fp16") -> Path:
    return task.folder / f"bundle-{precision}"


def open_bundle(task: Task, precision: str = "fp16") -> Bundle:
    return Bundle.open(bundle_folder(task, precision))


def peer_folder(task: Task) -> Path:
    return task.folder / "ctranslate2"


def checkpoint_folder(task: Task) -> Path:
    """Return where the checkpoint of a size lies; a random one is made, unless it is there."""
    if task.size not in RANDOM:
        return task.setup.checkpoint
    folder, partial = task.folder / "checkpoint", task.folder / "checkpoint.partial"
    if not folder.exists():
        random_model.write_checkpoint(partial, RANDOM[task.size], TOKENS, _SEED)
        partial.rename(folder)
    return folder


def _converted(task: Task, checkpoint: Path) -> Path:
    from bench.peers.checkpoint import Checkpoint
    from bench.peers.convert import convert

    if not peer_folder(task).exists():
        convert(Checkpoint.open(checkpoint), task.folder / "ctranslate2.partial").rename(peer_folder(task))
    return peer_folder(task)
