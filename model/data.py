"""Batches as tensors."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from model.batches import Arrays, padded


class Batch(NamedTuple):
    """Pairs of similar length, padded.

    source: int64 [batch, source]; source_lengths: int64 [batch]; target_in and target_out: int64
    [batch, target], the target after the start id and the target before the end-of-sentence id.
    """

    source: Tensor
    source_lengths: Tensor
    target_in: Tensor
    target_out: Tensor

    @classmethod
    def of(cls, arrays: Arrays) -> "Batch":
        """Make tensors from arrays."""
        return cls(*(torch.from_numpy(array).long() for array in arrays))


def pad(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Pad rows of ids to one int64 tensor [rows, longest]."""
    return torch.from_numpy(padded(rows, pad_id)).long()
