"""Keys and values that fit signed bytes."""

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn

from dragoman.tokenizer import Tokenizer
from export.examples import Example, batches, run
from export.key_values import LARGEST, Bytes, scale_to_bytes
from export.samples import Sample
from export.write import examples_of
from model.transformer import Transformer

PAIRS = 40


@pytest.fixture
def examples(loaded: tuple[Transformer, Tokenizer], samples: list[Sample]) -> list[Example]:
    return examples_of(samples[:PAIRS], [[]] * PAIRS, loaded[1], loaded[0].config.max_positions)


@pytest.fixture
def scaled(loaded: tuple[Transformer, Tokenizer], examples: list[Example]) -> Transformer:
    model = copy.deepcopy(loaded[0])
    scale_to_bytes(model, examples)
    return model


@contextmanager
def outputs(model: nn.Module, name: str) -> Iterator[list[Tensor]]:
    """What a layer gives while the block runs."""
    seen: list[Tensor] = []
    handle = model.get_submodule(name).register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    yield seen
    handle.remove()


@torch.no_grad()
@pytest.mark.parametrize("attention", ["self_attention.query_key_value", "cross_attention.key_value"])
def test_each_channel_uses_all_levels(scaled: Transformer, examples: list[Example], attention: str) -> None:
    width = 2 * scaled.config.d_model
    for layer in range(scaled.config.decoder_layers):
        with outputs(scaled, f"decoder.{layer}.{attention}") as seen:
            for batch in batches(examples, scaled.config.pad_id):
                run(scaled, batch)
        largest = torch.cat([output.flatten(0, -2) for output in seen])[:, -width:].abs().amax(dim=0)
        assert (largest <= LARGEST * 1.001).all()
        assert (largest >= LARGEST / 1.126).all()


@torch.inference_mode()
def test_the_model_computes_the_same(loaded: tuple[Transformer, Tokenizer], scaled: Transformer) -> None:
    source, lengths, target = (
        torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]]),
        torch.tensor([4, 2]),
        torch.tensor([[1, 9, 4]] * 2),
    )
    torch.testing.assert_close(
        scaled(source, lengths, target), loaded[0](source, lengths, target), rtol=1e-3, atol=1e-4
    )
    pickle.dumps(scaled)  # which no module can be that keeps a function of scale_to_bytes


@torch.inference_mode()
def test_a_model_without_biases_whose_heads_have_a_width_of_their_own_computes_the_same(
    random_model: Callable[..., Transformer], examples: list[Example]
) -> None:
    model = random_model(1, 2, bias=False, attention_head_dim=24, positions="relative", scale_attention=False)
    source, lengths, target = torch.tensor([[5, 6, 7, 2]]), torch.tensor([4]), torch.tensor([[1, 9, 4]])
    expected = model(source, lengths, target)
    scale_to_bytes(model, examples)
    torch.testing.assert_close(model(source, lengths, target), expected, rtol=1e-3, atol=1e-3)


def test_a_channel_that_is_always_zero_stays_finite(scaled: Transformer, examples: list[Example]) -> None:
    layer = scaled.get_submodule("decoder.0.cross_attention.key_value")
    assert isinstance(layer, nn.Linear)
    with torch.no_grad():
        layer.weight[3], layer.bias[3] = 0.0, 0.0
    scale_to_bytes(scaled, examples)
    assert all(weight.isfinite().all() for weight in scaled.state_dict().values())


def test_bytes_round_to_even_and_saturate() -> None:
    given = torch.tensor([0.5, 1.5, -0.4, 126.6, 300.0, -300.0])
    assert Bytes()(given).tolist() == [0, 2, 0, 127, 127, -128]
