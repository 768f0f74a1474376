"""A checkpoint's folder as plain arrays, read without torch: what the converters for the peers start from."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from dragoman.tokenizer import JOINT, SOURCE, TARGET
from model.tables import sinusoids

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Checkpoint:
    """The configuration and weights of a trained model."""

    folder: Path
    config: dict[str, Any]
    weights: dict[str, Array]  # fp32, by the names of the training code

    @classmethod
    def open(cls, folder: Path) -> "Checkpoint":
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        tensors = load_file(folder / "model.safetensors")
        return cls(folder, config, {name: tensor.astype(np.float32) for name, tensor in tensors.items()})

    @property
    def target_embedding(self) -> Array:
        """[target vocabulary, d_model]."""
        return self.weights.get("target_embedding.weight", self.weights["source_embedding.weight"])

    @property
    def output_weight(self) -> Array:
        """Of the projection to logits: [target vocabulary, d_model]."""
        return self.weights.get("output.weight", self.target_embedding)

    def positions(self, side: str) -> Array:
        """Return [positions, d_model] what is added to the embeddings of a side, "source" or "target"."""
        rows, offset = self.config["max_positions"], self.config["position_offset"]
        learned = self.weights.get(f"{side}_positions.table")
        kind, width = self.config["positions"], self.config["d_model"]
        table = sinusoids(rows + offset, width, kind) if learned is None else learned
        return table[offset:]

    def tokenizer_files(self) -> tuple[Path, Path]:
        """Return the SentencePiece models of source and target, which may be one."""
        joint = self.folder / JOINT
        return (joint, joint) if joint.is_file() else (self.folder / SOURCE, self.folder / TARGET)
