"""Parallel corpora: TSV files to pairs, pairs to batches of about equal cost, the same for the same seed."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from dragoman.errors import DataError
from dragoman.tokenizer import Tokenizer

OPENERS = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
MAX_BROKEN_SHARE = 0.01
POOL_BATCHES = 64


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs and how many lines were not one."""

    sources: list[str]
    targets: list[str]
    broken_lines: list[int]

    def __len__(self) -> int:
        return len(self.sources)


def open_text(path: Path) -> IO[str]:
    """Open a text file, plain or compressed, as UTF-8; undecodable bytes become U+FFFD and break their line."""
    opener = OPENERS.get(path.suffix, open)
    return opener(path, "rt", encoding="utf-8", errors="replace", newline="\n")  # type: ignore[no-any-return, operator]


def read_corpus(path: Path) -> Corpus:
    """Read `source TAB target` lines.

    A line without exactly one tab, with an empty side or with bytes that are not UTF-8 is counted and skipped.

    Raises:
        DataError: the file cannot be read, is empty, or more than 1 % of its lines are broken.
    """
    sources, targets, broken = [], [], []
    try:
        with open_text(path) as lines:
            for number, line in enumerate(lines, 1):
                fields = [field.strip() for field in line.rstrip("\r\n").split("\t")]
                if len(fields) == 2 and all(fields) and "\ufffd" not in line:
                    sources.append(fields[0])
                    targets.append(fields[1])
                else:
                    broken.append(number)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise _unreadable(path, error) from error
    total = len(sources) + len(broken)
    if not total:
        raise DataError(f"{path}: is empty")
    if not sources or len(broken) > max(1, MAX_BROKEN_SHARE * total):
        raise DataError(
            f"{path}: {len(broken)} of {total} lines are not 'source<TAB>target' in UTF-8, more than "
            f"{MAX_BROKEN_SHARE:.0%} allowed; first broken lines: {broken[:5]}"
        )
    return Corpus(sources, targets, broken)


def read_sentences(path: Path) -> Corpus:
    """Read `source TAB target` lines as `read_corpus` does, or lines of a source each, which have no targets.

    Raises:
        DataError: as `read_corpus`.
    """
    try:
        with open_text(path) as lines:
            sources = [line.strip() for line in lines if line.strip()]
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise _unreadable(path, error) from error
    if not sources or any("\t" in source for source in sources):
        return read_corpus(path)
    if broken := [number for number, source in enumerate(sources, 1) if "\ufffd" in source]:
        raise DataError(f"{path}: sentence {broken[0]} is not UTF-8")
    return Corpus(sources, [], [])


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: cannot read: {getattr(error, 'strerror', None) or error}")


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
