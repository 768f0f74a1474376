"""Encoder and decoder layers: attention and feed-forward, each with a residual connection and normalization."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.attention import CrossAttention, KeyValue, SelfAttention
from model.config import Activation, TransformerConfig
from model.dropout import Dropout
from model.norms import new_norm
from model.recurrence import SimpleRecurrence

Cache = tuple[Tensor, ...]  # a decoder layer's cache of the target: `KeyValue`, or the state of a recurrence


def relu(states: Tensor) -> Tensor:
    """Compute max(0, x): on a CPU as a sum, whose compiled gradient takes half the time of that of `F.relu`."""
    return F.relu(states) if states.is_cuda else (states + states.abs()) * 0.5


ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "gelu_sigmoid": lambda states: states * torch.sigmoid(1.702 * states),  # section 2 of arXiv:1606.08415
    "silu": F.silu,
    "tanh": torch.tanh,
}


class FeedForward(nn.Module):
    """Two linear layers with an activation between them, position by position.

    If gated, the first layer is twice as wide: one half is activated, and multiplied by the other half.
    """

    def __init__(self, config: TransformerConfig, d_ff: int) -> None:
        super().__init__()
        self.gated = config.gated
        self.expand = nn.Linear(config.d_model, 2 * d_ff if self.gated else d_ff, bias=config.bias)
        self.contract = nn.Linear(d_ff, config.d_model, bias=config.bias)
        self.activation = ACTIVATIONS[config.activation]

    def forward(self, states: Tensor) -> Tensor:
        """Transform states [..., d_model]; keeps the shape."""
        hidden = self.expand(states)
        if self.gated:
            gate, linear = hidden.chunk(2, dim=-1)
            return self.contract(self.activation(gate) * linear)  # type: ignore[no-any-return]
        return self.contract(self.activation(hidden))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """The normalization of one sublayer, before the sublayer or after the sum."""

    def __init__(self, config: TransformerConfig, dropout: float) -> None:
        super().__init__()
        self.norm = new_norm(config)
        self.pre = config.norm == "pre"
        self.dropout = Dropout(dropout)

    def before(self, states: Tensor) -> Tensor:
        """Compute the sublayer's input."""
        return self.norm(states) if self.pre else states

    def after(self, states: Tensor, update: Tensor) -> Tensor:
        """Add the sublayer's output to the sublayer's input."""
        total = states + self.dropout(update)
        return total if self.pre else self.norm(total)  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """Self-attention, feed-forward."""

    def __init__(self, config: TransformerConfig, dropout: float) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config, config.heads)
        self.self_residual = Residual(config, dropout)
        self.feed_forward = FeedForward(config, config.d_ff)
        self.feed_forward_residual = Residual(config, dropout)

    def forward(self, states: Tensor, lengths: Tensor, bias: Tensor | None = None) -> Tensor:
        """Transform states; the shape does not change.

        Args:
            states: [batch, source, d_model].
            lengths: [batch].
            bias: the bias of the self-attention scores, [1, heads, source, source].
        """
        update = self.self_attention(self.self_residual.before(states), lengths, bias)
        states = self.self_residual.after(states, update)
        update = self.feed_forward(self.feed_forward_residual.before(states))
        return self.feed_forward_residual.after(states, update)


class DecoderLayer(nn.Module):
    """Causal self-attention or a recurrence, attention to the source, feed-forward."""

    def __init__(self, config: TransformerConfig, dropout: float) -> None:
        super().__init__()
        self.recurs = config.decoder_cell == "ssru"
        if self.recurs:
            self.recurrence = SimpleRecurrence(config)
        else:
            self.self_attention = SelfAttention(config, config.decoder_head_count)
        self.self_residual = Residual(config, dropout)
        self.cross_attention = CrossAttention(config, config.decoder_head_count)
        self.cross_residual = Residual(config, dropout)
        self.feed_forward = FeedForward(config, config.decoder_d_ff or config.d_ff)
        self.feed_forward_residual = Residual(config, dropout)

    def forward(self, states: Tensor, source: Tensor, source_lengths: Tensor, bias: Tensor | None = None) -> Tensor:
        """Transform states; the shape does not change.

        Args:
            states: [batch, target, d_model].
            source: [batch, source, d_model].
            source_lengths: [batch].
            bias: the bias of the self-attention scores, [1, heads, target, target].
        """
        before = self.self_residual.before(states)
        update = self.recurrence(before) if self.recurs else self.self_attention(before, None, bias)
        states = self.self_residual.after(states, update)
        update = self.cross_attention(self.cross_residual.before(states), source, source_lengths)
        states = self.cross_residual.after(states, update)
        update = self.feed_forward(self.feed_forward_residual.before(states))
        return self.feed_forward_residual.after(states, update)

    def step(
        self, states: Tensor, cache: Cache, lengths: Tensor, memory: KeyValue, memory_lengths: Tensor,
        bias: Tensor | None = None,
    ) -> tuple[Tensor, Cache]:  # fmt: skip
        """Transform one position per row.

        Args:
            states: [batch, 1, d_model].
            cache: own keys and values, each [batch, heads, capacity, head_dim], written in place; for a recurrence only
                its state, float32 [batch, d_model].
            lengths: int32 [batch], positions in the cache before this step.
            memory: the source's keys and values, each [batch, heads, capacity, head_dim].
            memory_lengths: int32 [batch], source positions of each row.
            bias: the bias of the self-attention scores, [batch, heads, 1, capacity].

        Returns:
            [batch, 1, d_model] and the cache.
        """
        before = self.self_residual.before(states)
        if self.recurs:
            update, *present = self.recurrence.step(before, *cache)
        else:
            update, *present = self.self_attention.step(before, cache[0], cache[1], lengths, bias)
        states = self.self_residual.after(states, update)
        update = self.cross_attention.step(self.cross_residual.before(states), *memory, memory_lengths)
        states = self.cross_residual.after(states, update)
        update = self.feed_forward(self.feed_forward_residual.before(states))
        return self.feed_forward_residual.after(states, update), tuple(present)
