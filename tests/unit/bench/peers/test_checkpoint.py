"""What the converters start from is what the model computes with."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("safetensors", reason='needs the extra "peers"')

from safetensors.numpy import save_file

from bench.peers.checkpoint import Checkpoint
from model.config import TransformerConfig
from model.positions import Positions
from model.transformer import Transformer

SMALL: dict[str, Any] = {
    "source_vocabulary_size": 17,
    "target_vocabulary_size": 17,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "max_positions": 30,
}


def checkpoint_of(model: Transformer, folder: Path) -> Checkpoint:
    (folder / "config.json").write_text(json.dumps(model.config.model_dump()))
    weights = {name: parameter.detach().numpy().astype(np.float16) for name, parameter in model.named_parameters()}
    save_file(weights, folder / "model.safetensors")
    return Checkpoint.open(folder)


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves", "learned"])
@pytest.mark.parametrize("offset", [0, 2])
def test_positions_are_those_of_the_model(kind: str, offset: int, tmp_path: Path) -> None:
    model = Transformer(TransformerConfig(**SMALL, positions=kind, position_offset=offset))
    checkpoint = checkpoint_of(model, tmp_path)
    for side in ("source", "target"):
        positions: Positions = getattr(model, f"{side}_positions")
        expected = positions.table.detach().numpy()[offset:]
        tolerance = 1e-3 if kind == "learned" else 1e-7  # weights are stored in half precision, sines are computed
        np.testing.assert_allclose(checkpoint.positions(side), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("tie", [True, False])
def test_shared_and_tied_weights_are_found(share: bool, tie: bool, tmp_path: Path) -> None:
    model = Transformer(TransformerConfig(**SMALL, share_embeddings=share, tie_output=tie))
    checkpoint = checkpoint_of(model, tmp_path)
    for expected, actual in (
        (model.target_embedding.weight, checkpoint.target_embedding),
        (model.output.weight, checkpoint.output_weight),
    ):
        np.testing.assert_array_equal(actual, expected.detach().half().float().numpy())
