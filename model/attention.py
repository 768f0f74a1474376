"""Dot-product and multi-head attention, over whole sequences and one step at a time."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import TransformerConfig

KeyValue = tuple[Tensor, Tensor]


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """Mark which of `size` positions of each row are valid. lengths: [batch] -> bool [batch, 1, 1, size]."""
    return torch.arange(size, device=lengths.device) < lengths[:, None, None, None]


def split_heads(states: Tensor, heads: int) -> Tensor:
    """Split the width: [batch, length, heads * head_dim] -> [batch, heads, length, head_dim]."""
    return states.view(*states.shape[:-1], heads, states.shape[-1] // heads).transpose(1, 2)


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, *, scaled: bool = True, bias: Tensor | None = None
) -> Tensor:
    """Compute softmax(Q K^T / sqrt(head_dim) + bias) V.

    Explicit operators: at sentence length, PyTorch's fused CPU kernel is slower, especially in the backward pass.

    Args:
        query: [batch, heads, queries, head_dim].
        key: [batch, heads, keys, head_dim].
        value: as `key`.
        mask: see `attention_weights`.
        scaled: see `attention_weights`.
        bias: see `attention_weights`.

    Returns:
        [batch, queries, heads * head_dim].
    """
    weights = attention_weights(query, key, mask, scaled=scaled, bias=bias)
    return (weights.to(value.dtype) @ value).transpose(1, 2).flatten(2)


def attention_weights(query: Tensor, key: Tensor, mask: Tensor, *, scaled: bool, bias: Tensor | None) -> Tensor:
    """Compute softmax(Q K^T / sqrt(head_dim) + bias).

    Args:
        query: [batch, heads, queries, head_dim].
        key: [batch, heads, keys, head_dim].
        mask: bool, broadcast to [batch, heads, queries, keys]; True where a query may attend.
        scaled: whether the products are divided by sqrt(head_dim).
        bias: broadcast to [batch, heads, queries, keys].

    Returns:
        float32 [batch, heads, queries, keys].
    """
    scores = query @ key.transpose(-1, -2)
    scores = scores * query.shape[-1] ** -0.5 if scaled else scores
    scores = scores if bias is None else scores + bias
    return F.softmax(scores.float().masked_fill(~mask, -torch.inf), dim=-1)


class AttendSelf(nn.Module):
    """Attention of a sequence to itself; queries, keys and values are packed in one tensor."""

    def __init__(self, heads: int, *, scaled: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.scaled = scaled

    def forward(self, packed: Tensor, lengths: Tensor | None, bias: Tensor | None = None) -> Tensor:
        """Attend over whole sequences.

        Args:
            packed: [batch, length, 3 * heads * head_dim]: queries, keys, values.
            lengths: [batch], valid positions of each row; None: a causal mask instead.
            bias: the bias of the scores, [1, heads, length, length].

        Returns:
            [batch, length, heads * head_dim].
        """
        query, key, value = (split_heads(part, self.heads) for part in packed.chunk(3, dim=-1))
        size = packed.shape[1]
        if lengths is None:
            mask = torch.ones(size, size, dtype=torch.bool, device=packed.device).tril()
        else:
            mask = length_mask(lengths, size)
        return attend(query, key, value, mask, scaled=self.scaled, bias=bias)

    def step(
        self, packed: Tensor, key_buffer: Tensor, value_buffer: Tensor, lengths: Tensor, bias: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Attend from one position per row; write its key and value at the row's length, in place.

        Args:
            packed: [batch, 1, 3 * heads * head_dim].
            key_buffer: [batch, heads, capacity, head_dim].
            value_buffer: as `key_buffer`.
            lengths: int32 [batch], valid positions before this step.
            bias: the bias of the scores, [batch, heads, 1, capacity].

        Returns:
            The attended values [batch, 1, heads * head_dim], and the two buffers.
        """
        query, key, value = (split_heads(part, self.heads) for part in packed.chunk(3, dim=-1))
        rows = torch.arange(packed.shape[0], device=packed.device)
        key_buffer[rows, :, lengths.long()] = key.squeeze(2)
        value_buffer[rows, :, lengths.long()] = value.squeeze(2)
        mask = length_mask(lengths + 1, key_buffer.shape[2])
        attended = attend(query, key_buffer, value_buffer, mask, scaled=self.scaled, bias=bias)
        return attended, key_buffer, value_buffer


class AttendSource(nn.Module):
    """Attention of the target to the source."""

    def __init__(self, heads: int, *, scaled: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.scaled = scaled

    def forward(self, query: Tensor, packed: Tensor, lengths: Tensor) -> Tensor:
        """Attend to packed keys and values.

        Args:
            query: [batch, target, heads * head_dim].
            packed: [batch, source, 2 * heads * head_dim].
            lengths: [batch], valid positions of each source.

        Returns:
            [batch, target, heads * head_dim].
        """
        key, value = (split_heads(part, self.heads) for part in packed.chunk(2, dim=-1))
        return self.step(query, key, value, lengths)

    def step(self, query: Tensor, key_buffer: Tensor, value_buffer: Tensor, lengths: Tensor) -> Tensor:
        """Do as `forward`, with separate keys and values, each [batch, heads, capacity, head_dim]."""
        mask = length_mask(lengths, key_buffer.shape[2])
        return attend(split_heads(query, self.heads), key_buffer, value_buffer, mask, scaled=self.scaled)


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence to itself; query, key and value in one projection."""

    def __init__(self, config: TransformerConfig, heads: int) -> None:
        super().__init__()
        width = heads * config.head_dim_of(heads)
        self.query_key_value = nn.Linear(config.d_model, 3 * width, bias=config.bias)
        self.output = nn.Linear(width, config.d_model, bias=config.bias)
        self.attend = AttendSelf(heads, scaled=config.scale_attention)

    def forward(self, states: Tensor, lengths: Tensor | None, bias: Tensor | None = None) -> Tensor:
        """Attend. states: [batch, length, d_model], as the result; other arguments as in `AttendSelf.forward`."""
        return self.output(self.attend(self.query_key_value(states), lengths, bias))  # type: ignore[no-any-return]

    def step(
        self, states: Tensor, key_buffer: Tensor, value_buffer: Tensor, lengths: Tensor, bias: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Attend from one position per row: states [batch, 1, d_model]; other arguments as in `AttendSelf.step`."""
        packed = self.query_key_value(states)
        attended, keys, values = self.attend.step(packed, key_buffer, value_buffer, lengths, bias)
        return self.output(attended), keys, values


class CrossAttention(nn.Module):
    """Multi-head attention of the target to the source; keys and values depend only on the source."""

    def __init__(self, config: TransformerConfig, heads: int) -> None:
        super().__init__()
        width = heads * config.head_dim_of(heads)
        self.query = nn.Linear(config.d_model, width, bias=config.bias)
        self.key_value = nn.Linear(config.d_model, 2 * width, bias=config.bias)
        self.output = nn.Linear(width, config.d_model, bias=config.bias)
        self.attend = AttendSource(heads, scaled=config.scale_attention)

    def forward(self, states: Tensor, source: Tensor, source_lengths: Tensor) -> Tensor:
        """Attend. states: [batch, target, d_model], the shape of the result; source: [batch, source, d_model]."""
        attended = self.attend(self.query(states), self.key_value(source), source_lengths)
        return self.output(attended)  # type: ignore[no-any-return]

    def step(self, states: Tensor, key_buffer: Tensor, value_buffer: Tensor, source_lengths: Tensor) -> Tensor:
        """Attend from states [batch, 1, d_model] to the source's keys and values [batch, heads, capacity, head_dim]."""
        attended = self.attend.step(self.query(states), key_buffer, value_buffer, source_lengths)
        return self.output(attended)  # type: ignore[no-any-return]
