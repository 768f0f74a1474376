"""The model with random weights, at a small size."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("safetensors", reason='needs the extra "peers"')

from bench.peers.checkpoint import Checkpoint
from bench.peers.random_model import SHAPES, random_weights, sentences, write_checkpoint
from dragoman.tokenizer import Tokenizer

SMALL = SHAPES["base"] | {
    "source_vocabulary_size": 300,
    "target_vocabulary_size": 300,
    "d_model": 32,
    "heads": 4,
    "d_ff": 48,
    "encoder_layers": 2,
    "decoder_layers": 1,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("random") / "checkpoint"
    write_checkpoint(folder, SMALL, 7, 1)
    return folder


def test_every_sentence_has_the_tokens_that_were_asked_for(folder: Path) -> None:
    tokenizer = Tokenizer.open(folder)
    assert tokenizer.vocabulary_sizes == (300, 300)
    texts = sentences(SMALL, 7, 50, 1)
    ids = [tokenizer.encode(text) for text in texts]
    assert {len(row) for row in ids} == {6}  # and the end-of-sentence id
    assert min(min(row) for row in ids) > SMALL["unknown_id"]
    assert [tokenizer.decode(row) for row in ids] == texts
    assert len(set(texts)) == 50


def test_it_is_the_same_again_for_a_seed_only(folder: Path, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "again", SMALL, 7, 1)
    write_checkpoint(tmp_path / "other", SMALL, 7, 2)
    for name in ("model.safetensors", "parity.tsv"):
        original = (folder / name).read_bytes()
        assert (tmp_path / "again" / name).read_bytes() == original
        assert (tmp_path / "other" / name).read_bytes() != original


def test_no_state_ends_a_sentence() -> None:
    weights = random_weights(SMALL, np.random.default_rng(1))
    random = np.random.default_rng(2)
    states = random.standard_normal((1000, SMALL["d_model"]))
    states = (states - states.mean(axis=1, keepdims=True)) / states.std(axis=1, keepdims=True)
    logits = (states + weights["decoder_norm.bias"]) @ weights["output.weight"].T
    assert logits[:, SMALL["eos_id"]] == pytest.approx(-12.0, abs=1e-3)
    assert np.delete(logits, SMALL["eos_id"], axis=1).max(axis=1).min() > 0


def test_a_tied_model_neither_ends_a_sentence_nor_repeats_its_last_token() -> None:
    weights = random_weights(SMALL | {"tie_output": True, "d_model": 256}, np.random.default_rng(1))
    assert "output.weight" not in weights
    embedding = weights["source_embedding.weight"]
    states = embedding[4:]  # what is left of a state if the layers add nothing
    states = (states - states.mean(axis=1, keepdims=True)) / states.std(axis=1, keepdims=True)
    logits = (states * weights["decoder_norm.weight"] + weights["decoder_norm.bias"]) @ embedding.T
    assert logits[:, SMALL["eos_id"]].max() < -6
    chosen = logits.argmax(axis=1)
    assert (chosen == np.arange(4, 300)).mean() < 0.02
    assert len(set(chosen.tolist())) > 100


def test_the_checkpoint_reads_back_in_full_precision(folder: Path) -> None:
    checkpoint = Checkpoint.open(folder)
    assert checkpoint.config == SMALL
    assert {weight.dtype for weight in checkpoint.weights.values()} == {np.dtype(np.float32)}
    assert checkpoint.output_weight is checkpoint.weights["output.weight"]
    assert checkpoint.target_embedding is checkpoint.weights["source_embedding.weight"]


def test_the_shapes_are_what_they_are_called_after() -> None:
    """Parameters without those of norms and biases, in millions."""
    counts = {}
    for name, one in SHAPES.items():
        layer = 4 * one["d_model"] ** 2 + 2 * one["d_model"] * one["d_ff"]
        layers = one["encoder_layers"] * layer + one["decoder_layers"] * (layer + 4 * one["d_model"] ** 2)
        counts[name] = round((layers + one["target_vocabulary_size"] * one["d_model"]) / 1e6)
    assert counts == {"base": 60, "large": 385, "opus-mt": 74, "nllb-600m": 615}
