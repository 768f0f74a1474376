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

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.onnx.ops import symbolic

from export.calibrate import Ranges
from export.operators import CONTRIB_VERSION
from model.layers import FeedForward
from service.runtime.saturation import LARGEST_SUM

# Of two neighbouring weights of the same sign together. Rounding may add one: half a level each.
WEIGHT_LEVELS = LARGEST_SUM - 1
# Keeps the scale of a layer or column that is all zero finite; far below any activation that matters.
SMALLEST = 1e-10


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
        weight = linear.weight.detach().float()
        scale = _largest_sums(weight).clamp_min(SMALLEST) / WEIGHT_LEVELS
        self.register_buffer("weight", (weight / scale[:, None]).round().to(torch.int8).T.contiguous())
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


def _largest_sums(weight: Tensor) -> Tensor:
    """Find the largest sums of two neighbouring weights of one sign: weight [out, in] to [out]."""
    pairs = F.pad(weight, (0, weight.shape[1] % 2)).view(len(weight), -1, 2)
    sums = pairs.clamp_min(0).sum(dim=-1), pairs.clamp_max(0).sum(dim=-1).neg()
    return torch.maximum(*sums).amax(dim=1)


def quantize(model: nn.Module, ranges: Ranges) -> None:
    """Replace every linear layer of a model, in place.

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
