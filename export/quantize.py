"""8-bit products whose result for a row does not depend on the rows beside it.

Weights: symmetric, one scale an output column. Activations: one calibrated scale a layer, known beforehand, so a
sentence's numbers are the same in any batch. (A scale taken from the batch, as ready-made dynamic quantizers do,
changes every row when one neighbour changes.) A product is two nodes: quantize, multiply with scales and bias.

Activations are unsigned with their zero in the middle: ONNX Runtime's x86 kernels multiply unsigned by signed
bytes, and take 20 times as long for signed by signed ones. Without VNNI they add two neighbouring products in 16 bits
and saturate, see `service.runtime.saturation`; so the scale of a column is such that no two neighbours of the same
sign add up to more than 128. That costs a third of a bit, and no BLEU; weights in unsigned bytes, which saturate
nowhere, cost nearly three times the time where there is VNNI.
"""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.onnx.ops import symbolic

from export.calibrate import Ranges
from export.operators import CONTRIB_VERSION
from model.layers import FeedForward
from model.transformer import Transformer
from service.runtime.saturation import LARGEST_SUM

# Of two neighbouring weights of the same sign together. Rounding may add one: half a level each.
WEIGHT_LEVELS = LARGEST_SUM - 1
# Keeps the scale of a layer or column that is all zero finite; far below any activation that matters.
SMALLEST = 1e-10
EMBEDDING_LEVELS = 127
# Of a weight, quantized at a time.
_ROWS = 4096


class QuantizedLinear(nn.Module):
    """A linear layer as an int8 product. Input [..., in], output [..., out], both float."""

    weight: Tensor
    weight_scale: Tensor
    input_scale: Tensor
    zero_point: Tensor
    bias: Tensor | None

    def __init__(self, linear: nn.Linear, largest: float, *, non_negative: bool = False) -> None:
        """Quantize a layer's weights.

        Args:
            linear: the layer.
            largest: absolute value up to which its input is represented; beyond, it saturates.
            non_negative: its input is never negative (behind a relu): zero is the lowest of the 256 levels.
        """
        super().__init__()
        zero_point = 0 if non_negative else 128
        weight, scale = _levels_and_scale(linear.weight.detach())
        self.register_buffer("weight", weight)
        self.register_buffer("weight_scale", scale)
        self.register_buffer("input_scale", torch.tensor(max(largest, SMALLEST) / (255 - zero_point)))
        self.register_buffer("zero_point", torch.tensor(zero_point, dtype=torch.uint8))
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach().float())

    def forward(self, states: Tensor) -> Tensor:
        """Multiply states, float [..., in]. Returns float [..., out]."""
        return self._product(self._levels(states))

    def _levels(self, states: Tensor) -> Tensor:
        """Do as QuantizeLinear of ONNX: float to uint8."""
        if torch.compiler.is_exporting():
            inputs = [states, self.input_scale, self.zero_point]
            return symbolic("QuantizeLinear", inputs, dtype=torch.uint8, shape=states.shape)
        return ((states / self.input_scale).round() + self.zero_point).clamp(0, 255).to(torch.uint8)

    def _product(self, levels: Tensor) -> Tensor:
        """Do as com.microsoft::MatMulIntegerToFloat: uint8 times int8, scaled, with bias."""
        if torch.compiler.is_exporting():
            return symbolic(
                "com.microsoft::MatMulIntegerToFloat",
                [levels, self.weight, self.input_scale, self.weight_scale, self.zero_point, None, self.bias],
                dtype=torch.float32,
                shape=[*levels.shape[:-1], self.weight.shape[1]],
                version=CONTRIB_VERSION,
            )
        product = (levels.int() - self.zero_point.int()) @ self.weight.int()
        out = product * (self.input_scale * self.weight_scale)
        return out if self.bias is None else out + self.bias


class QuantizedEmbedding(nn.Module):
    """An embedding whose rows are signed bytes, each row with a scale of its own. Ids [...] to float [..., width]."""

    weight: Tensor
    scale: Tensor

    def __init__(self, weight: Tensor, factor: float) -> None:
        """Quantize the rows of an embedding.

        Args:
            weight: float [rows, width].
            factor: by which each row is multiplied.
        """
        super().__init__()
        levels, scale = torch.empty(weight.shape, dtype=torch.int8), torch.empty(len(weight), 1)
        for start in range(0, len(weight), _ROWS):
            part = slice(start, start + _ROWS)
            rows = weight[part].float()
            scale[part] = rows.abs().amax(dim=1, keepdim=True).clamp_min(SMALLEST) / EMBEDDING_LEVELS
            levels[part] = (rows / scale[part]).round().to(torch.int8)
        self.register_buffer("weight", levels)
        self.register_buffer("scale", scale * factor)

    def forward(self, ids: Tensor) -> Tensor:
        """Look up ids, int [...]. Returns float [..., width]."""
        return F.embedding(ids, self.weight).float() * F.embedding(ids, self.scale)


def _levels_and_scale(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Quantize a weight [out, in], some of its rows after the other: one of 256,000 rows fills a gigabyte.

    Returns:
        int8 [in, out], and what a level is worth, float [out].
    """
    levels = torch.empty(weight.shape[1], weight.shape[0], dtype=torch.int8)
    scale = torch.empty(len(weight))
    for start in range(0, len(weight), _ROWS):
        part = slice(start, start + _ROWS)
        rows = weight[part].float()
        scale[part] = _largest_sums(rows).clamp_min(SMALLEST) / WEIGHT_LEVELS
        levels[:, part] = (rows / scale[part, None]).round().to(torch.int8).T
    return levels, scale


def _largest_sums(weight: Tensor) -> Tensor:
    """Find the largest sums of two neighbouring weights of one sign: weight [out, in] to [out]."""
    pairs = F.pad(weight, (0, weight.shape[1] % 2)).view(len(weight), -1, 2)
    sums = pairs.clamp_min(0).sum(dim=-1), pairs.clamp_max(0).sum(dim=-1).neg()
    return torch.maximum(*sums).amax(dim=1)


@torch.no_grad()
def quantize(model: Transformer, ranges: Ranges) -> None:
    """Replace every linear layer of a model and its embeddings, in place.

    Args:
        model: whose layers have the names in `ranges`.
        ranges: the range of the input of each layer.
    """
    for parent_name, parent in list(model.named_modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                largest = ranges[f"{parent_name}.{name}" if parent_name else name]
                positive = isinstance(parent, FeedForward) and parent.is_positive and name == "contract"
                setattr(parent, name, QuantizedLinear(child, largest, non_negative=positive))
    embeddings = {cast(nn.Embedding, one) for one in (model.source_embedding, model.target_embedding)}
    quantized: dict[nn.Module, nn.Module] = {
        one: QuantizedEmbedding(one.weight, model.embedding_factor) for one in embeddings
    }
    model.source_embedding = quantized[model.source_embedding]
    model.target_embedding = quantized[model.target_embedding]
    model.embedding_factor = 1.0
