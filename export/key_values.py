"""Keys and values as bytes: a decode step reads a quarter of what it would read of fp32.

Every channel is scaled beforehand so that its largest value is that of a signed byte. The factor goes into the weights
on both sides of it, key against query and value against output projection, where it changes nothing but rounding (the
idea of SmoothQuant, arXiv:2211.10438). So the scale of a byte is 1 for all, and a sentence's numbers are the same in
any batch.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn
from torch.onnx.ops import symbolic

from export.calibrate import steady
from export.examples import Example, batches, run
from model.attention import CrossAttention, SelfAttention
from model.layers import DecoderLayer
from model.transformer import Transformer

LARGEST = 127
# Keeps the factor of a channel that is all zero finite; far below any key or value that matters.
_SMALLEST = 1e-6


class Bytes(nn.Module):
    """Rounds: float to int8 of the same shape; what is beyond saturates."""

    def forward(self, states: Tensor) -> Tensor:
        """Do as QuantizeLinear of ONNX."""
        if torch.compiler.is_exporting():
            inputs = [states, torch.ones(()), torch.zeros((), dtype=torch.int8)]
            return symbolic("QuantizeLinear", inputs, dtype=torch.int8, shape=states.shape)
        return states.round().clamp(-LARGEST - 1, LARGEST).to(torch.int8)


@torch.no_grad()
def scale_to_bytes(model: Transformer, examples: Sequence[Example]) -> None:
    """Scale the decoder's keys and values so that the largest of each channel is LARGEST, or an eighth less.

    Args:
        model: in evaluation mode, fp32; changed in place, computes the same but for rounding.
        examples: what the model is used for; padding counts too.
    """
    layers = [cast(DecoderLayer, layer) for layer in model.decoder]
    own = [layer.self_attention for layer in layers]
    source = [layer.cross_attention for layer in layers]
    projections = [*(one.query_key_value for one in own), *(one.key_value for one in source)]
    with _largest_outputs(projections) as largest:
        for batch in batches(examples, model.config.pad_id):
            run(model, batch)
    width = 2 * model.config.decoder_head_count * model.config.head_dim
    factors = {layer: LARGEST / steady(values[-width:].clamp_min(_SMALLEST)) for layer, values in largest.items()}
    for one in own:
        _scale_own(one, factors[one.query_key_value])
    for other in source:
        _scale_source(other, factors[other.key_value])


@contextmanager
def _largest_outputs(layers: list[nn.Linear]) -> Iterator[dict[nn.Linear, Tensor]]:
    """Find the largest absolute value of every output channel of each layer while the block runs."""
    largest = {layer: torch.zeros(layer.out_features) for layer in layers}

    def hook(layer: nn.Linear, _: object, output: Tensor) -> None:
        largest[layer] = torch.maximum(largest[layer], output.abs().flatten(0, -2).amax(dim=0))

    handles = [layer.register_forward_hook(hook) for layer in layers]
    try:
        yield largest
    finally:
        for handle in handles:
            handle.remove()


def _scale_own(attention: SelfAttention, factors: Tensor) -> None:
    """Scale an attention to its own sequence by factors [2 * heads * head_dim], of keys and values."""
    key, value = factors.chunk(2)
    _scale_outputs(attention.query_key_value, torch.cat([1 / key, key, value]))
    attention.output.weight.div_(value)


def _scale_source(attention: CrossAttention, factors: Tensor) -> None:
    """Scale an attention to the source by factors [2 * heads * head_dim], of keys and values."""
    key, value = factors.chunk(2)
    _scale_outputs(attention.query, 1 / key)
    _scale_outputs(attention.key_value, factors)
    attention.output.weight.div_(value)


def _scale_outputs(layer: nn.Linear, factors: Tensor) -> None:
    layer.weight.mul_(factors[:, None])
    if layer.bias is not None:
        layer.bias.mul_(factors)
