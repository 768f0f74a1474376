"""The models that `bench.gpu` measures with, made on the machine that they are measured on."""

import fcntl
from pathlib import Path
from typing import Any, Final

from bench.exported import exported
from bench.gpu.setup import Figures, Task
from bench.load.texts import read_pairs
from bench.peers import random_model
from dragoman.bundle import Bundle

# Twice as wide and deep as "base": 12+12 layers, about 0.5 billion parameters.
LARGE: Final[dict[str, Any]] = random_model.BASE | {
    "d_model": 1024,
    "heads": 16,
    "d_ff": 4096,
    "encoder_layers": 12,
    "decoder_layers": 12,
}
CONFIGS: Final = {"base": random_model.BASE, "large": LARGE}
TOKENS: Final = 25  # of a sentence of a random model, its end counted, and of its translation
_SEED: Final = 1
_PEER: Final = "ctranslate2"


def fp16(task: Task) -> Figures:
    return _bundle(task, "fp16")


def fp32(task: Task) -> Figures:
    """Make the bundle with which that one is compared, on a CPU."""
    return _bundle(task, "fp32")


def bundle_folder(task: Task, precision: str) -> Path:
    return task.folder / f"bundle-{precision}"


def open_bundle(task: Task, precision: str = "fp16") -> Bundle:
    return Bundle.open(bundle_folder(task, precision))


def peer(task: Task) -> Figures:
    """Convert the checkpoint for CTranslate2, unless that was done."""
    from bench.peers.checkpoint import Checkpoint
    from bench.peers.convert import convert

    task.folder.mkdir(parents=True, exist_ok=True)
    if not peer_folder(task).exists():
        partial = task.folder / f"{_PEER}.partial"
        convert(Checkpoint.open(checkpoint_folder(task)), partial).rename(peer_folder(task))
    return {"folder": str(peer_folder(task))}


def peer_folder(task: Task) -> Path:
    return task.folder / _PEER


def checkpoint_folder(task: Task) -> Path:
    """Return where the checkpoint of a size lies; a random one is made, unless it is there."""
    if task.size not in CONFIGS:
        return task.setup.checkpoint
    folder = task.folder / "checkpoint"
    task.folder.mkdir(parents=True, exist_ok=True)
    with (task.folder / "checkpoint.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two preparations of a size may come here at once
        if not folder.exists():
            partial = task.folder / "checkpoint.partial"
            random_model.write_checkpoint(partial, CONFIGS[task.size], TOKENS, _SEED)
            partial.rename(folder)
    return folder


def _bundle(task: Task, precision: str) -> Figures:
    """Export, unless that was done, and check one sentence: the part `parity` compares the rest, on the device."""
    task.folder.mkdir(parents=True, exist_ok=True)
    checkpoint, pair = checkpoint_folder(task), task.folder / f"pair-{precision}.tsv"
    [source], [target] = read_pairs(checkpoint / "parity.tsv" if task.size in CONFIGS else task.setup.data, 1)
    pair.write_text(f"{source}\t{target}\n", encoding="utf-8")
    return {"folder": str(exported(checkpoint, precision, task.folder, data=pair))}
