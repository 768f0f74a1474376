"""Keys and values that fit signed bytes."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn

from dragoman.tokenizer import Tokenizer
from export.calibrate import run_pairs
from export.key_values import LARGEST, Bytes, scaled_to_bytes
from model.data import Corpus
from model.transformer import Transformer

PAIRS = 40


@pytest.fixture
def pairs(corpus: Corpus) -> Corpus:
    return Corpus(corpus.sources[:PAIRS], corpus.targets[:PAIRS], [])


@contextmanager
def outputs(model: nn.Module, name: str) -> Iterator[list[Tensor]]:
    """What a layer gives while the block runs."""
    seen: list[Tensor] = []
    handle = model.get_submodule(name).register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    yield seen
    handle.remove()


@torch.no_grad()
@pytest.mark.parametrize("attention", ["self_attention.query_key_value", "cross_attention.key_value"])
def test_each_channel_uses_all_levels(loaded: tuple[Transformer, Tokenizer], pairs: Corpus, attention: str) -> None:
    model, tokenizer = loaded
    scaled = scaled_to_bytes(model, tokenizer, pairs)
    width = 2 * model.config.d_model
    for layer in range(model.config.decoder_layers):
        with outputs(scaled, f"decoder.{layer}.{attention}") as seen:
            run_pairs(scaled, tokenizer, pairs)
        largest = torch.cat([output.flatten(0, -2) for output in seen])[:, -width:].abs().amax(dim=0)
        assert (largest <= LARGEST * 1.001).all()
        assert (largest >= LARGEST / 1.126).all()


@torch.inference_mode()
def test_the_model_computes_the_same(loaded: tuple[Transformer, Tokenizer], pairs: Corpus) -> None:
    model, tokenizer = loaded
    scaled = scaled_to_bytes(model, tokenizer, pairs)
    source, lengths, target = (
        torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]]),
        torch.tensor([4, 2]),
        torch.tensor([[1, 9, 4]] * 2),
    )
    torch.testing.assert_close(scaled(source, lengths, target), model(source, lengths, target), rtol=1e-3, atol=1e-4)


def test_the_given_model_is_left_as_it_was(loaded: tuple[Transformer, Tokenizer], pairs: Corpus) -> None:
    model, tokenizer = loaded
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    scaled = scaled_to_bytes(model, tokenizer, pairs)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    pickle.dumps((model, scaled))  # which no module can be that keeps a function of scaled_to_bytes


def test_a_channel_that_is_always_zero_stays_finite(loaded: tuple[Transformer, Tokenizer], pairs: Corpus) -> None:
    model, tokenizer = loaded
    scaled = scaled_to_bytes(model, tokenizer, pairs)
    layer = scaled.get_submodule("decoder.0.cross_attention.key_value")
    assert isinstance(layer, nn.Linear)
    with torch.no_grad():
        layer.weight[3], layer.bias[3] = 0.0, 0.0
    again = scaled_to_bytes(scaled, tokenizer, pairs)
    assert all(weight.isfinite().all() for weight in again.state_dict().values())


def test_bytes_round_to_even_and_saturate() -> None:
    given = torch.tensor([0.5, 1.5, -0.4, 126.6, 300.0, -300.0])
    assert Bytes()(given).tolist() == [0, 2, 0, 127, 127, -128]
