"""The models that `bench.gpu` measures with, made on the machine that they are measured on."""

from pathlib import Path

from bench.exported import bundle_folder, exported
from bench.frame import Figures
from bench.gpu.task import Task
from bench.peers.checkpoint import Checkpoint
from bench.peers.random_model import SHAPES, drawn_checkpoint
from dragoman.bundle import Bundle
from model.corpus import read_corpus


def models(task: Task) -> Figures:
    """Make what is not there: bundles in fp16 and, of the default model, fp32, and the model of CTranslate2."""
    task.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = checkpoint_folder(task)
    precisions = ("fp16",) if task.size in SHAPES else ("fp16", "fp32")
    # Compared with one sentence of the checkpoint: the part `parity` compares the rest, on the device.
    pair, data = task.folder / "pair.tsv", checkpoint / "parity.tsv" if task.size in SHAPES else task.setup.data
    corpus = read_corpus(data)
    pair.write_text(f"{corpus.sources[0]}\t{corpus.targets[0]}\n", encoding="utf-8")
    figures: Figures = {precision: str(exported(checkpoint, precision, task.folder, pair)) for precision in precisions}
    task.note(figures)  # CTranslate2 may not be installed
    from bench.peers.convert import converted

    return {**figures, "ctranslate2": str(converted(Checkpoint.open(checkpoint), task.folder))}


def open_bundle(task: Task, precision: str = "fp16") -> Bundle:
    return Bundle.open(bundle_folder(task.folder, precision))


def checkpoint_folder(task: Task) -> Path:
    """Return where the checkpoint of a size lies; a random one is made, unless it is there."""
    return drawn_checkpoint(task.size, task.folder) if task.size in SHAPES else task.setup.checkpoint
