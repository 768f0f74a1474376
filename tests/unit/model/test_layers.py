"""Layers against PyTorch's own, which compute the same."""

from typing import Any

import pytest
import torch
from torch import nn

from model.config import TransformerConfig
from model.layers import ACTIVATIONS, EncoderLayer, FeedForward, Residual

D_MODEL, HEADS, D_FF, ROWS, LENGTH = 16, 4, 24, 3, 5


def config(**fields: Any) -> TransformerConfig:
    sizes = {"source_vocabulary_size": 17, "target_vocabulary_size": 17, "d_model": D_MODEL, "heads": HEADS}
    return TransformerConfig.model_validate({**sizes, "d_ff": D_FF, **fields})


@pytest.fixture
def states() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(ROWS, LENGTH, D_MODEL)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_an_encoder_layer_is_that_of_pytorch(norm: str, activation: str, states: torch.Tensor) -> None:
    ours = EncoderLayer(config(norm=norm, activation=activation), 0.0).eval()
    theirs = nn.TransformerEncoderLayer(
        D_MODEL, HEADS, D_FF, dropout=0.0, activation=activation, batch_first=True, norm_first=norm == "pre"
    )
    theirs.load_state_dict(
        {
            "self_attn.in_proj_weight": ours.self_attention.query_key_value.weight,
            "self_attn.in_proj_bias": ours.self_attention.query_key_value.bias,
            "self_attn.out_proj.weight": ours.self_attention.output.weight,
            "self_attn.out_proj.bias": ours.self_attention.output.bias,
            "linear1.weight": ours.feed_forward.expand.weight,
            "linear1.bias": ours.feed_forward.expand.bias,
            "linear2.weight": ours.feed_forward.contract.weight,
            "linear2.bias": ours.feed_forward.contract.bias,
            "norm1.weight": ours.self_residual.norm.weight,
            "norm1.bias": ours.self_residual.norm.bias,
            "norm2.weight": ours.feed_forward_residual.norm.weight,
            "norm2.bias": ours.feed_forward_residual.norm.bias,
        }
    )
    lengths = torch.tensor([LENGTH, 3, 1])
    padding = torch.arange(LENGTH)[None] >= lengths[:, None]
    with torch.no_grad():
        expected = theirs(states, src_key_padding_mask=padding)
        actual = ours(states, lengths)
    torch.testing.assert_close(actual[~padding], expected[~padding])


def test_a_gate_multiplies_by_its_other_half(states: torch.Tensor) -> None:
    """Section 2 of arXiv:2002.05202, without biases."""
    layer = FeedForward(config(activation="relu", gated=True, bias=False), 64)
    gate, linear = layer.expand.weight.chunk(2)
    expected = ((states @ gate.T).relu() * (states @ linear.T)) @ layer.contract.weight.T
    torch.testing.assert_close(layer(states), expected)


def test_activations_are_those_that_other_libraries_name(states: torch.Tensor) -> None:
    """Against the formulas of arXiv:1606.08415, which PyTorch does not share."""
    cubic = 0.5 * states * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (states + 0.044715 * states**3)))
    torch.testing.assert_close(ACTIVATIONS["gelu_tanh"](states), cubic)
    torch.testing.assert_close(ACTIVATIONS["gelu_sigmoid"](states), states * (1.702 * states).sigmoid())


def test_the_norm_stands_before_the_sublayer_or_after_the_sum(states: torch.Tensor) -> None:
    update = torch.ones_like(states)
    before, after = (Residual(config(norm=norm), 0.0).eval() for norm in ("pre", "post"))
    normal = nn.functional.layer_norm(states, (D_MODEL,))
    torch.testing.assert_close(before.before(states), normal)
    torch.testing.assert_close(before.after(states, update), states + update)
    torch.testing.assert_close(after.before(states), states)
    torch.testing.assert_close(after.after(states, update), nn.functional.layer_norm(states + update, (D_MODEL,)))


def test_dropout_is_of_the_update_alone(states: torch.Tensor) -> None:
    residual = Residual(config(norm="pre"), 0.5).train()
    torch.testing.assert_close(residual.after(states, torch.zeros_like(states)), states)
    update = residual.after(torch.zeros_like(states), torch.ones_like(states))
    assert set(update.unique().tolist()) == {0.0, 2.0}
