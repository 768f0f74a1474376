"""Sentences in the form of training: ids of a source, and ids of its translation after the start id."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.batches import padded

BATCH = 125

Ids = NDArray[np.int64]


class Example(NamedTuple):
    """One sentence.

    Attributes:
        source: ids, with the end-of-sentence id and the marks of the language.
        target: ids of a translation, after the start id and without the end-of-sentence id.
    """

    source: list[int]
    target: list[int]


class Batch(NamedTuple):
    """Examples that are run together, padded.

    Attributes:
        source: int64 [batch, source], padded.
        source_lengths: int64 [batch].
        target: int64 [batch, target], padded.
        target_lengths: int64 [batch].
    """

    source: Ids
    source_lengths: Ids
    target: Ids
    target_lengths: Ids


def batches(examples: Sequence[Example], pad_id: int) -> Iterator[Batch]:
    """Pad the examples, batch by batch."""
    for start in range(0, len(examples), BATCH):
        sources, targets = zip(*examples[start : start + BATCH], strict=True)
        source, target = (padded(rows, pad_id).astype(np.int64) for rows in (sources, targets))
        yield Batch(source, _lengths(sources), target, _lengths(targets))


def is_there(lengths: Ids, size: int) -> NDArray[np.bool_]:
    """Tell which of `size` positions of each row are no padding: [batch] to [batch, size]."""
    return np.arange(size) < lengths[:, None]


def _lengths(rows: Sequence[Sequence[int]]) -> Ids:
    return np.array([len(row) for row in rows])
