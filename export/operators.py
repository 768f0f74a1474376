"""The serving runtime's attention operator in place of the model's own attention.

One operator does all three attentions: com.microsoft::GroupQueryAttention of ONNX Runtime. It reads
only each row's valid length, writes new keys and values into the buffer it is given, and needs no mask.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.onnx.ops import symbolic_multi_out

from model.attention import AttendSelf, AttendSource

OPERATOR = "com.microsoft::GroupQueryAttention"
CONTRIB_VERSION = 1
HEAD_DIM_UNIT = 8  # the operator takes heads of its multiples only
_BIAS = 10  # the place of attention_bias among the operator's inputs
_SCALES = 12  # the place of k_scale and v_scale among the operator's inputs


class RowLengths(NamedTuple):
    """Lengths in the operator's terms; takes the place of the tensor `lengths` in an exported model.

    Attributes:
        last: int32 [batch], the last valid position of each row once this run's keys are written.
        size: int32 scalar, positions of the buffer.
    """

    last: Tensor
    size: Tensor


def group_query_attention(
    query: Tensor,
    cache: tuple[Tensor, Tensor] | None,
    new: Tensor | None,
    lengths: RowLengths,
    heads: int,
    *,
    scaled: bool,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Write one GroupQueryAttention node.

    Args:
        query: [batch, length, width], where the width is that of all heads; or queries, keys and values packed
            [batch, length, 3 * width].
        cache: past keys and values [batch, heads, capacity, head_dim], where int8 stands for itself: its scale is 1;
            None for whole sequences.
        new: empty keys and values [batch, 0, width] where the cache is complete; None where query is packed.
        lengths: valid positions.
        heads: attention heads.
        scaled: whether scores are divided by the root of a head's width.
        bias: of the scores, [1 or batch, heads, length, capacity].

    Returns:
        [batch, length, width] and the present keys and values.
    """
    batch, length, width = query.shape
    width = width if new is not None else width // 3
    key, value = cache or (None, None)
    capacity = length if key is None else key.shape[2]
    present = [batch, heads, capacity, width // heads]
    # Whole sequences see both ways; one query at the end of its row sees all of it either way.
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": heads, "causal": 0 if cache is None else 1}
    if not scaled:
        attributes["scale"] = 1.0
    inputs = [query, new, new, key, value, lengths.last, lengths.size]
    if bias is not None:
        inputs += [None] * (_BIAS - len(inputs)) + [bias]
    dtype = query.dtype if key is None else key.dtype
    if dtype == torch.int8:
        attributes |= {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR", "kv_cache_bit_width": 8}
        inputs += [None] * (_SCALES - len(inputs)) + [torch.ones(1)] * 2
    out, keys, values = symbolic_multi_out(
        OPERATOR,
        inputs,
        attrs=attributes,
        dtypes=[query.dtype, dtype, dtype],
        shapes=[[batch, length, width], present, present],
        version=CONTRIB_VERSION,
    )
    return out, keys, values


class OperatorAttendSelf(nn.Module):
    """`model.attention.AttendSelf` as the operator."""

    def __init__(self, heads: int, *, scaled: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.scaled = scaled

    def forward(self, packed: Tensor, lengths: RowLengths, bias: Tensor | None = None) -> Tensor:
        """See `AttendSelf.forward`."""
        return group_query_attention(packed, None, None, lengths, self.heads, scaled=self.scaled, bias=bias)[0]

    def step(
        self, packed: Tensor, key_buffer: Tensor, value_buffer: Tensor, lengths: RowLengths, bias: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """See `AttendSelf.step`."""
        cache = (key_buffer, value_buffer)
        return group_query_attention(packed, cache, None, lengths, self.heads, scaled=self.scaled, bias=bias)


class OperatorAttendSource(nn.Module):
    """`model.attention.AttendSource.step` as the operator; the past is all there is."""

    def __init__(self, heads: int, *, scaled: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.scaled = scaled

    def step(self, query: Tensor, key_buffer: Tensor, value_buffer: Tensor, lengths: RowLengths) -> Tensor:
        """See `AttendSource.step`."""
        nothing = query[:, :0]
        cache = (key_buffer, value_buffer)
        return group_query_attention(query, cache, nothing, lengths, self.heads, scaled=self.scaled)[0]


def use_operators(model: nn.Module) -> None:
    """Replace every attention of a model, in place."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, AttendSelf):
                setattr(module, name, OperatorAttendSelf(child.heads, scaled=child.scaled))
            elif isinstance(child, AttendSource):
                setattr(module, name, OperatorAttendSource(child.heads, scaled=child.scaled))


def int32_scalar(value: int) -> Tensor:
    """Make a scalar as the operator takes it."""
    return torch.tensor(value, dtype=torch.int32)
