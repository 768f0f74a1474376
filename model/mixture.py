"""The frequency of each pair in an epoch: a weight for its tag, in copies."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError


class Mixture:
    """The pairs of a corpus with the weights of their tags."""

    def __init__(self, tags: Sequence[str], tag_of: NDArray[np.uint32], weights: Mapping[str, float]) -> None:
        """Give each tag the weight of the last matching pattern, or 1.

        Args:
            tags: the tags of the corpus.
            tag_of: uint32 [pairs], the index of each pair's tag.
            weights: the copies of a pair in an epoch, by shell pattern.

        Raises:
            DataError: a pattern matches no tag, or no pair is left.
        """
        for pattern in weights:
            if not any(fnmatchcase(tag, pattern) for tag in tags):
                shown = ", ".join(tags[:5]) + (", ..." if len(tags) > 5 else "")
                raise DataError(f"--weight: {pattern!r} matches no tag of the corpus; its tags are {shown}")
        self._tag_of = tag_of
        self._patterns = [_last_match(tag, weights) for tag in tags]
        self._weights = weights
        self._copies = np.array([weights.get(pattern, 1.0) for pattern in self._patterns], dtype=np.float32)
        if not self._copies[np.unique(tag_of)].any():
            raise DataError("--weight: no pair is left, every tag has the weight 0")

    def draw(self, seed: int, epoch: int) -> NDArray[np.int32]:
        """Draw the pairs of an epoch, in their order: a pure function of seed and epoch.

        A weight of 2.5 gives each pair two copies, and every second pair a third one, drawn anew in each epoch.
        """
        random = np.random.default_rng([seed, epoch])
        copies = self._copies[self._tag_of]
        whole = np.floor(copies)
        drawn = whole.astype(np.int32) + (random.random(len(copies), dtype=np.float32) < copies - whole)
        return random.permutation(np.repeat(np.arange(len(copies), dtype=np.int32), drawn))

    @property
    def expected(self) -> float:
        """The average number of pairs of an epoch."""
        return float(self._copies[self._tag_of].sum(dtype=np.float64))

    def report(self) -> list[dict[str, Any]]:
        """List each pattern with its weight and its numbers of tags and pairs, for JSON; "" is for unmatched tags."""
        pairs = np.bincount(self._tag_of, minlength=len(self._patterns))
        report = []
        for pattern, weight in [*self._weights.items(), ("", 1.0)]:
            mine = [tag for tag, its in enumerate(self._patterns) if its == pattern]
            report.append({"pattern": pattern, "weight": weight, "tags": len(mine), "pairs": int(pairs[mine].sum())})
        return report


def _last_match(tag: str, weights: Mapping[str, float]) -> str:
    """Give the last pattern that matches a tag, "" if none does."""
    return next((pattern for pattern in reversed(list(weights)) if fnmatchcase(tag, pattern)), "")
