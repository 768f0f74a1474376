"""Sentences as ids, and such that are drawn at random."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.bundle import Manifest
from dragoman.tokenizer import Tokenizer
from service.decode import Decode
from service.options import DEFAULT_DECODING, Decoding

_FIRST_ID: Final = 4  # those before it are no pieces of text
# Lengths as sentences have them: half below ten tokens, one in a thousand above a hundred.
_MEDIAN_TOKENS: Final = 9.0
_SPREAD: Final = 0.75


@dataclass(frozen=True)
class Sentences:
    """What both sides translate."""

    sources: Sequence[list[int]]  # ids of each sentence, with the end-of-sentence id
    limits: Sequence[int]  # target tokens that each may have at most

    def __len__(self) -> int:
        return len(self.sources)

    def pick(self, count: int) -> "Sentences":
        return self.take(even_places(len(self), count))

    def take(self, places: Sequence[int]) -> "Sentences":
        return Sentences([self.sources[place] for place in places], [self.limits[place] for place in places])

    def decodes(self, decoding: Decoding = DEFAULT_DECODING) -> list[Decode]:
        return [Decode(ids, limit, decoding=decoding) for ids, limit in zip(self.sources, self.limits, strict=True)]


def even_places(total: int, count: int) -> list[int]:
    """Return at most `count` of the places from 0 to `total`, at even distances."""
    count = min(count, total)
    return [index * total // count for index in range(count)]


def encoded(bundle: Path, texts: Sequence[str]) -> list[list[int]]:
    """Return the ids of each text, with the end-of-sentence id."""
    tokenizer, eos_id = Tokenizer.open(bundle), Manifest.read(bundle).eos_id
    return [[*tokenizer.encode(text), eos_id] for text in texts]


def random_sentences(
    manifest: Manifest, tokens: Sequence[int], limits: Sequence[int], random: np.random.Generator | None = None
) -> Sentences:
    """Draw sources of random ids, of `tokens` each, ends counted; the same ids each time where no `random` is given."""
    random = random or np.random.default_rng(0)
    sources = [
        [*random.integers(_FIRST_ID, manifest.vocabulary_size, count - 1).tolist(), manifest.eos_id] for count in tokens
    ]
    return Sentences(sources, list(limits))


def random_lengths(random: np.random.Generator, count: int, limit: int) -> NDArray[np.int64]:
    """Draw lengths as those of sentences."""
    drawn = random.lognormal(np.log(_MEDIAN_TOKENS), _SPREAD, count)
    return np.clip(np.rint(drawn), 1, limit).astype(np.int64)


def equal_sentences(one: Sequence[Sequence[int]], other: Sequence[Sequence[int]]) -> int:
    """Count the sentences whose tokens are all equal."""
    return sum(list(a) == list(b) for a, b in zip(one, other, strict=True))
