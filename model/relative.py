"""Relative positions as in T5 (arXiv:1910.10683): a bias of attention scores by the distance of two positions."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import TransformerConfig
from model.tables import buckets

Biases = Sequence[Tensor | None]  # of the scores of self-attention, layer by layer


class NoBias:
    """The bias of models whose attention does not depend on distances."""

    def __init__(self, layers: int) -> None:
        self.layers = layers

    def of_sequences(self, *_: object) -> Biases:
        """Give no bias for any layer."""
        return [None] * self.layers

    of_step = of_sequences


class DistanceBias(nn.Module):
    """Tables of biases by head and bucket: one table for all layers of a side, or one for each layer.

    Attributes:
        table: [tables * buckets, heads], the tables one below another.
    """

    bucket_of: Tensor

    def __init__(self, config: TransformerConfig, heads: int, layers: int, *, causal: bool) -> None:
        """Make random tables.

        Args:
            config: the configuration with the buckets.
            heads: the number of heads of each layer.
            layers: the number of layers.
            causal: whether positions attend only to themselves and earlier ones.
        """
        super().__init__()
        self.layers = layers
        self.last = config.relative_max_distance  # larger distances share its bucket
        self.tables = 1 if config.relative_shared else layers
        count = config.relative_buckets
        self.table = nn.Parameter(torch.randn(self.tables * count, heads) * config.d_model**-0.5)
        distances = np.arange(-self.last, 1 if causal else self.last + 1)
        bucket_of = torch.from_numpy(buckets(distances, count, self.last, causal=causal))
        self.register_buffer("bucket_of", bucket_of, persistent=False)

    def of_sequences(self, ids: Tensor) -> Biases:
        """Look up the bias between the positions of ids [batch, length]: for each layer [1, heads, length, length]."""
        size = ids.shape[1]
        return self._bias(torch.arange(size, device=ids.device)[None], size)

    def of_step(self, lengths: Tensor, caches: Sequence[tuple[Tensor, ...]]) -> Biases:
        """Look up the bias of one query per row.

        Args:
            lengths: int [batch], the position of each query.
            caches: each layer's keys and values, [batch, heads, capacity, head_dim].

        Returns:
            For each layer [batch, heads, 1, capacity]; after the query, any values.
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
    """Make the bias of one side's self-attention for a configuration, see `DistanceBias`."""
    if config.positions == "relative":
        return DistanceBias(config, heads, layers, causal=causal)
    return NoBias(layers)
