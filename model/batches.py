"""Makes batches of about equal cost from tokenized pairs, as arrays; needs no torch, so other processes can do it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Tokenized(NamedTuple):
    """Ids of a pair, without start and end-of-sentence ids."""

    source: list[int]
    target: list[int]


class SpecialIds(NamedTuple):
    """Ids with special roles, from the model's configuration."""

    pad: int
    start: int
    eos: int


class Arrays(NamedTuple):
    """Pairs of similar length, padded; `Batch` holds the same as tensors.

    source: int32 [batch, source]; source_lengths: int64 [batch]; target_in and target_out: int32 [batch, target].
    """

    source: NDArray[np.int32]
    source_lengths: NDArray[np.int64]
    target_in: NDArray[np.int32]
    target_out: NDArray[np.int32]


def bucket(pairs: Sequence[Tokenized], batch_tokens: int) -> Iterator[list[Tokenized]]:
    """Yield pairs of similar length; a batch is padded to at most `batch_tokens` per side, or is a single pair."""
    batch: list[Tokenized] = []
    longest = 0
    for pair in sorted(pairs, key=lambda pair: (len(pair.target), len(pair.source))):
        longest = max(longest, len(pair.target), len(pair.source))
        if batch and (len(batch) + 1) * (longest + 1) > batch_tokens:
            yield batch
            batch, longest = [], max(len(pair.target), len(pair.source))
        batch.append(pair)
    if batch:
        yield batch


def collate(pairs: Sequence[Tokenized], ids: SpecialIds) -> Arrays:
    """Pad the pairs of one batch."""
    sources = [[*pair.source, ids.eos] for pair in pairs]
    return Arrays(
        source=padded(sources, ids.pad),
        source_lengths=np.array([len(source) for source in sources]),
        target_in=padded([[ids.start, *pair.target] for pair in pairs], ids.pad),
        target_out=padded([[*pair.target, ids.eos] for pair in pairs], ids.pad),
    )


def padded(rows: Sequence[Sequence[int]], pad_id: int) -> NDArray[np.int32]:
    """Pad rows of ids to one array, int32 [rows, longest]."""
    out = np.full((len(rows), max(map(len, rows))), pad_id, dtype=np.int32)
    for row, ids in zip(out, rows, strict=True):
        row[: len(ids)] = ids
    return out
