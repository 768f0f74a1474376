"""Sentences as the model is given them in training: ids of a source, and ids of its translation behind the start id."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from model.data import pad
from model.transformer import Transformer

BATCH = 125


class Example(NamedTuple):
    """One sentence.

    Attributes:
        source: ids, the end-of-sentence id and the marks of its language among them.
        target: ids of a translation that begins with the start id and has no end.
    """

    source: list[int]
    target: list[int]


class Batch(NamedTuple):
    """Examples that are run together.

    Attributes:
        source: int64 [batch, source], padded.
        source_lengths: int64 [batch].
        target: int64 [batch, target], padded.
        target_lengths: int64 [batch].
    """

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor


def batches(examples: Sequence[Example], pad_id: int) -> Iterator[Batch]:
    """Pad the examples, batch by batch."""
    for start in range(0, len(examples), BATCH):
        sources, targets = zip(*examples[start : start + BATCH], strict=True)
        yield Batch(pad(sources, pad_id), _lengths(sources), pad(targets, pad_id), _lengths(targets))


@torch.no_grad()
def run(model: Transformer, batch: Batch) -> None:
    """Run a batch through the model for the sake of hooks on its layers.

    No logits are computed, which would be gigabytes with a large vocabulary: the output layer gets no rows. A hook
    before it that comes before this one (`prepend`) still sees them all.
    """
    cut = model.output.register_forward_pre_hook(lambda _, inputs: (inputs[0][:0], *inputs[1:]))
    try:
        model(batch.source, batch.source_lengths, batch.target)
    finally:
        cut.remove()


def _lengths(rows: Sequence[Sequence[int]]) -> Tensor:
    return torch.tensor(list(map(len, rows)))
