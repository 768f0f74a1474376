"""Weights by their names: tied ones, scaled ones, and those of a folder that cannot be read."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from dragoman.errors import BundleError
from dragoman.tokenizer import Tokenizer
from export.parameters import open_checkpoint
from model.checkpoint import weights
from model.config import TransformerConfig
from model.transformer import Transformer
from tests.unit.export.written import module, parameters

SIZES = {"source_vocabulary_size": 9, "target_vocabulary_size": 9, "d_model": 4}
TABLES = {name: np.full((9, 4), number, np.float32) for number, name in enumerate(("source", "target", "output"))}


@pytest.mark.parametrize(
    ("shared", "tied", "stored", "expected"),
    [
        (True, True, ["source"], [0, 0, 0]),
        (True, False, ["source", "output"], [0, 0, 2]),
        (False, True, ["source", "target"], [0, 1, 1]),
        (False, False, ["source", "target", "output"], [0, 1, 2]),
    ],
)
def test_a_tied_weight_has_every_name(shared: bool, tied: bool, stored: list[str], expected: list[int]) -> None:
    names = {"source": "source_embedding.weight", "target": "target_embedding.weight", "output": "output.weight"}
    config = TransformerConfig(**SIZES, share_embeddings=shared, tie_output=tied)
    held = parameters({names[one]: TABLES[one] for one in stored}, config)
    assert [int(held.read(name)[0, 0]) for name in names.values()] == expected
    assert held.count == 36 * len(stored)


def test_a_layer_may_have_no_bias() -> None:
    weight, given = np.ones((3, 2), np.float32), np.arange(3, dtype=np.float32)
    held = parameters({"one.weight": weight, "one.bias": given, "other.weight": weight})
    bias = held.bias("one")
    assert bias is not None
    assert bias.tolist() == [0, 1, 2]
    assert held.bias("other") is None


def test_outputs_are_scaled_with_their_bias_and_inputs_divided() -> None:
    weight, bias = np.arange(6, dtype=np.float16).reshape(3, 2), np.array([1, 2, 3], np.float16)
    held = parameters({"one.weight": weight, "one.bias": bias, "other.weight": weight})
    assert held.read("one.weight").dtype == np.float16
    factors, divisors = np.array([1, 10, 0.5], np.float32), np.array([2, 0.25], np.float32)
    held.scale_outputs("one", factors)
    held.divide_inputs("one", divisors)
    held.scale_outputs("other", factors)
    read = held.read("one.weight")
    np.testing.assert_allclose(read, weight * factors[:, None] / divisors, rtol=1e-6)
    np.testing.assert_allclose(held.bias("one"), bias * factors, rtol=1e-6)
    np.testing.assert_allclose(held.read("other.weight"), weight * factors[:, None], rtol=1e-6)
    assert read.dtype == np.float32
    assert held.bias("other") is None
    states = np.array([0.3, -0.7], np.float32)
    np.testing.assert_allclose(read @ (states * divisors), (weight @ states) * factors, rtol=1e-5)


def test_what_a_checkpoint_holds_is_what_torch_loads(checkpoint: Path, loaded: tuple[Transformer, Tokenizer]) -> None:
    held, tokenizer = open_checkpoint(checkpoint)
    model = loaded[0]
    assert held.config == model.config
    assert tokenizer.vocabulary_sizes == loaded[1].vocabulary_sizes
    assert held.count == sum(parameter.numel() for parameter in model.parameters())
    for name, weight in weights(module(held)).items():
        np.testing.assert_array_equal(weight, weights(model)[name], err_msg=name)


@pytest.fixture
def copied(checkpoint: Path, tmp_path: Path) -> Path:
    return shutil.copytree(checkpoint, tmp_path / "checkpoint")


def with_other_weights(folder: Path) -> None:
    arrays = load_file(folder / "model.safetensors")
    arrays["odd.weight"] = arrays.pop("output.weight")
    arrays["encoder_norm.bias"] = arrays["encoder_norm.bias"][:-1]
    save_file(arrays, folder / "model.safetensors")


def with_an_unknown_field(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"moe": 8}))


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "checkpoint: not a readable checkpoint: .*config.json"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "checkpoint: not a readable checkpoint"),
    "weights cut off": (
        lambda folder: (folder / "model.safetensors").write_bytes(b"\0" * 7),
        "checkpoint: not a readable checkpoint: .*model.safetensors: cannot read the weights",
    ),
    "an unknown field": (with_an_unknown_field, r"config\.json: moe: is no known field"),
    "other weights": (
        with_other_weights,
        r"model\.safetensors: weights do not fit the configuration: encoder_norm.bias is \[31\], not \[32\]; "
        "missing output.weight; unknown odd.weight",
    ),
}


@pytest.mark.parametrize(("harm", "message"), FAULTS.values(), ids=FAULTS)
def test_a_folder_that_is_no_checkpoint(copied: Path, harm: Callable[[Path], object], message: str) -> None:
    harm(copied)
    with pytest.raises(BundleError, match=message):
        open_checkpoint(copied)
