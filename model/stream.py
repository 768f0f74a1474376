"""The batches of a training run: a pure function of corpus, options and position, without state between batches."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.tokenizer import Tokenizer
from model.augmentation.augmenter import Augmenter
from model.augmentation.kinds import Kind
from model.augmentation.spelling import Pair
from model.batches import Arrays, SpecialIds, Tokenized, bucket, collate
from model.corpus import Corpus
from model.mixture import Mixture
from model.store import Store

POOL_BATCHES: Final = 64
_TOKENS_OF_A_PAIR: Final = 16


@dataclass(frozen=True)
class StreamOptions:
    """The options that determine the batches.

    Attributes:
        seed: the seed of order, copies, augmentation and segmentations.
        weights: the copies of a pair in an epoch, by shell pattern of its tag.
        augment: the share of the pairs that each kind of augmentation changes.
        candidates: the number of segmentations from which that of a source is drawn.
        max_tokens: a pair with a longer side is left out.
        batch_tokens: the limit of padded tokens of a batch, per side.
    """

    seed: int
    weights: Mapping[str, float]
    augment: Mapping[Kind, float]
    candidates: int
    max_tokens: int
    batch_tokens: int


class Pool(NamedTuple):
    """Batches that are made together, in their order, and the number of pairs that were too long."""

    batches: list[Arrays]
    too_long: int


class Pairs:
    """The pairs of each epoch: drawn by weight, shuffled, augmented."""

    def __init__(self, store: Store, options: StreamOptions) -> None:
        """Open a corpus.

        Raises:
            DataError: the weights do not match the corpus.
        """
        self.mixture = Mixture(store.record["tags"], store.tag_of, options.weights)
        self._store = store
        self._seed = options.seed
        self._augmenter = Augmenter(options.augment)
        self._drawn: tuple[int, NDArray[np.int32]] | None = None

    def count(self, epoch: int) -> int:
        """Count the pairs of an epoch."""
        return len(self._order(epoch))

    def pair(self, epoch: int, place: int) -> tuple[Pair, Random]:
        """Give the pair at a place of an epoch, and the generator for its further random numbers."""
        order = self._order(epoch)
        random = Random(f"{self._seed} {epoch} {place}")

        def other() -> Pair:
            return self._store.pair(int(order[random.randrange(len(order))]))

        return self._augmenter.augment(self._store.pair(int(order[place])), random, other), random

    def sample(self, most: int) -> Corpus:
        """Give up to `most` pairs of the first epoch, in the order of the corpus."""
        rows = self._order(0)[:most]
        pairs = [self.pair(0, int(place))[0] for place in np.argsort(rows, kind="stable")]
        return Corpus([source for source, _ in pairs], [target for _, target in pairs], [])

    def _order(self, epoch: int) -> NDArray[np.int32]:
        """Give the rows of an epoch; the rows of the last requested epoch are cached."""
        if self._drawn is None or self._drawn[0] != epoch:
            self._drawn = epoch, self.mixture.draw(self._seed, epoch)
        return self._drawn[1]


class Stream:
    """The batches of each epoch, pool by pool."""

    def __init__(self, folder: Path, tokenizer: Path, ids: SpecialIds, options: StreamOptions) -> None:
        """Open a corpus and a tokenizer.

        Args:
            folder: the folder of the corpus, see `Store`.
            tokenizer: the folder of the model's tokenizer.
            ids: special ids of the model.
            options: the options that determine the batches.

        Raises:
            DataError: the weights do not match the corpus.
            BundleError: there is no tokenizer.
        """
        self._pairs = Pairs(Store(folder), options)
        self._tokenizer = Tokenizer.open(tokenizer)
        self._ids = ids
        self._options = options
        self._pool_size = pool_size(options.batch_tokens)

    def pool_count(self, epoch: int) -> int:
        """Count the pools of an epoch."""
        return -(-self._pairs.count(epoch) // self._pool_size)

    def pool(self, epoch: int, number: int) -> Pool:
        """Make one pool of an epoch."""
        options, start = self._options, number * self._pool_size
        places = range(start, min(start + self._pool_size, self._pairs.count(epoch)))
        pairs = [pair for place in places if (pair := self._tokenized(epoch, place))]
        batches = list(bucket(pairs, options.batch_tokens))
        order = np.random.default_rng([options.seed, epoch, start]).permutation(len(batches))
        return Pool([collate(batches[i], self._ids) for i in order], len(places) - len(pairs))

    def _tokenized(self, epoch: int, place: int) -> Tokenized | None:
        """Encode the pair at a place of an epoch; None if it is too long."""
        (source, target), random = self._pairs.pair(epoch, place)
        most = self._options.max_tokens
        target_ids, source_ids = self._tokenizer.encode_target(target), self._tokenizer.encode(source)
        if max(len(source_ids), len(target_ids)) >= most:
            return None
        if self._options.candidates > 1:
            found = self._tokenizer.candidates(source, self._options.candidates)
            # The best segmentation with probability 1/2, the second with 1/4, and so on.
            short = [ids for ids in found if len(ids) < most]
            source_ids = short[int(-log2(1 - random.random())) % len(short)]
        return Tokenized(source_ids, target_ids)


def pool_size(batch_tokens: int) -> int:
    """Count the pairs of a pool."""
    return max(1, POOL_BATCHES * batch_tokens // _TOKENS_OF_A_PAIR)
