"""Pairs of a corpus to batches of about equal cost, the same for the same seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.tokenizer import Tokenizer
from model.corpus import Corpus

POOL_BATCHES = 64


@dataclass(frozen=True)
class Batch:
    """Pairs of like length, padded.

    source: int64 [batch, source]; source_lengths: int64 [batch]; target_in and target_out: int64
    [batch, target], the target behind the start id and before the end-of-sentence id.
    """

    source: Tensor
    source_lengths: Tensor
    target_in: Tensor
    target_out: Tensor


@dataclass(frozen=True)
class SpecialIds:
    """Ids with a role, from the model's configuration."""

    pad: int
    start: int
    eos: int


class PairDataset:
    """Tokenized pairs; `epoch` gives the batches of one pass, a pure function of seed and epoch number."""

    def __init__(
        self, corpus: Corpus, tokenizer: Tokenizer, ids: SpecialIds, *, max_tokens: int, candidates: int = 1
    ) -> None:
        """Tokenize all pairs.

        Args:
            corpus: the pairs.
            tokenizer: of the model.
            ids: special ids of the model.
            max_tokens: a pair with a longer side is left out (counted in `too_long`).
            candidates: segmentations kept of each source; above 1 each epoch draws one (subword regularization).
        """
        self._ids = ids
        self.sources: list[list[list[int]]] = []
        self.targets: list[list[int]] = []
        for source, target in zip(corpus.sources, corpus.targets, strict=True):
            variants = tokenizer.candidates(source, candidates) if candidates > 1 else [tokenizer.encode(source)]
            target_ids = tokenizer.encode_target(target)
            if max(len(variants[0]), len(target_ids)) < max_tokens:
                self.sources.append([variant for variant in variants if len(variant) < max_tokens])
                self.targets.append(target_ids)
        self.too_long = len(corpus) - len(self.targets)

    def __len__(self) -> int:
        return len(self.targets)

    def epoch(self, seed: int, epoch: int, batch_tokens: int) -> list[list[tuple[int, int]]]:
        """Plan shuffled batches of (pair, segmentation) indices; each pads to about `batch_tokens` per side at most."""
        random = np.random.default_rng([seed, epoch])
        # The best segmentation half of the time, the second a quarter, and so on.
        variants = random.geometric(0.5, len(self)) - 1
        items = [(i, int(variants[i]) % len(self.sources[i])) for i in random.permutation(len(self))]
        batches: list[list[tuple[int, int]]] = []
        pool = POOL_BATCHES * batch_tokens // 16
        for start in range(0, len(items), pool):
            batches += self._bucket(items[start : start + pool], batch_tokens)
        order = random.permutation(len(batches))
        return [batches[i] for i in order]

    def _bucket(self, items: Sequence[tuple[int, int]], batch_tokens: int) -> Iterator[list[tuple[int, int]]]:
        def size(item: tuple[int, int]) -> tuple[int, int]:
            return len(self.targets[item[0]]), len(self.sources[item[0]][item[1]])

        batch: list[tuple[int, int]] = []
        longest = 0
        for item in sorted(items, key=size):
            longest = max(longest, *size(item))
            if batch and (len(batch) + 1) * (longest + 1) > batch_tokens:
                yield batch
                batch, longest = [], max(size(item))
            batch.append(item)
        yield batch

    def collate(self, items: Sequence[tuple[int, int]]) -> Batch:
        """Pad the pairs of one batch."""
        ids = self._ids
        sources = [[*self.sources[i][variant], ids.eos] for i, variant in items]
        targets = [self.targets[i] for i, _ in items]
        return Batch(
            source=pad(sources, ids.pad),
            source_lengths=torch.tensor([len(source) for source in sources]),
            target_in=pad([[ids.start, *target] for target in targets], ids.pad),
            target_out=pad([[*target, ids.eos] for target in targets], ids.pad),
        )


def pad(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """Pad rows of ids to one int64 tensor [rows, longest]."""
    out = np.full((len(rows), max(map(len, rows))), pad_id, dtype=np.int64)
    for row, ids in zip(out, rows, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(out)
