"""Relative positions as in T5 (arXiv:1910.10683): what attention adds to a score by the distance of two positions."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.attention import KeyValue
from model.config import TransformerConfig

Biases = Sequence[Tensor | None]  # of the scores of self-attention, layer by layer


def buckets(distances: Tensor, count: int, max_distance: int, *, causal: bool) -> Tensor:
    """Put distances into buckets: one for each small distance, wider and wider ones up to `max_distance`.

    Args:
        distances: int64, position of the key less position of the query.
        count: of buckets, at least 4.
        max_distance: from which on all distances share the last bucket.
        causal: whether all keys lie before their query; else half of the buckets are for those behind it.

    Returns:
        int64 of the same shape, in [0, count).
    """
    behind = torch.zeros_like(distances)
    if not causal:
        count //= 2
        behind = (distances > 0).long() * count
    far = distances.clamp_max(0).neg() if causal else distances.abs()
    exact = count // 2
    # In fp32 and in this order, as T5 itself: some distances lie on the border of two buckets.
    octaves = (far.clamp_min(1).float() / exact).log() / math.log(max_distance / exact)
    wide = (exact + (octaves * (count - exact)).long()).clamp_max(count - 1)
    return behind + torch.where(far < exact, far, wide)


class NoBias:
    """Of models whose attention takes no notice of distances."""

    def __init__(self, layers: int) -> None:
        self.layers = layers

    def of_sequences(self, _: Tensor) -> Biases:
        """Add nothing in any layer."""
        return [None] * self.layers

    def of_step(self, _: Tensor, __: list[KeyValue]) -> Biases:
        """Add nothing in any layer."""
        return [None] * self.layers


class DistanceBias(nn.Module):
    """Tables of a bias by head and bucket: one for all layers of a side, or one for each.

    Attributes:
        table: [tables * buckets, heads], one table below the other.
    """

    bucket_of: Tensor

    def __init__(self, config: TransformerConfig, heads: int, layers: int, *, causal: bool) -> None:
        """Make random tables.

        Args:
            config: whose buckets.
            heads: of each layer.
            layers: how many.
            causal: whether positions attend to themselves and to earlier ones alone.
        """
        super().__init__()
        self.layers = layers
        self.last = config.relative_max_distance  # all beyond it are in its bucket
        self.tables = 1 if config.relative_shared else layers
        count = config.relative_buckets
        self.table = nn.Parameter(torch.randn(self.tables * count, heads) * config.d_model**-0.5)
        distances = torch.arange(-self.last, 1 if causal else self.last + 1)
        self.register_buffer("bucket_of", buckets(distances, count, self.last, causal=causal), persistent=False)

    def of_sequences(self, ids: Tensor) -> Biases:
        """Look up the bias among the positions of ids [batch, length]: of each layer [1, heads, length, length]."""
        size = ids.shape[1]
        return self._bias(torch.arange(size, device=ids.device)[None], size)

    def of_step(self, lengths: Tensor, caches: list[KeyValue]) -> Biases:
        """Look up the bias of one query a row.

        Args:
            lengths: int [batch], the position of each query.
            caches: a layer's keys and values, [batch, heads, capacity, head_dim].

        Returns:
            Of each layer [batch, heads, 1, capacity]; behind the query, any number.
        """
        return self._bias(lengths[:, None], caches[0][0].shape[2])

    def _bias(self, queries: Tensor, keys: int) -> Biases:
        """Look up the bias of positions `queries` [rows, queries] and [0, keys): [rows, heads, queries, keys]."""
        distances = torch.arange(keys, device=queries.device) - queries[..., None]
        places = (distances + self.last).clamp(0, len(self.bucket_of) - 1)
        by_distance = self.table.view(self.tables, -1, self.table.shape[1])[:, self.bucket_of]
        biases = [F.embedding(places, table).permute(0, 3, 1, 2) for table in by_distance]
        return biases if len(biases) == self.layers else biases * self.layers


def new_bias(config: TransformerConfig, heads: int, layers: int, *, causal: bool) -> DistanceBias | NoBias:
    """Make the bias of one side's self-attention as configured, see `DistanceBias`."""
    if config.positions == "relative":
        return DistanceBias(config, heads, layers, causal=causal)
    return NoBias(layers)
