"""The range of the inputs of each linear layer, chosen by what they are on real sentences."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from export.examples import is_there
from export.products import Ranges
from export.teacher import Floats, Seen

# The share of a layer's input values that are always inside its range.
COVERED = 0.9999
# Steps of a mantissa from 0.5 to 1: eight in an octave.
_STEPS = 16


def calibrate(runs: Iterable[Seen], tokens: tuple[int, int], factors: Mapping[str, Floats]) -> Ranges:
    """Choose the range of the absolute input values of each linear layer, at positions that are no padding.

    Values beyond the range saturate, and in return all others are represented more finely. The range is the one with
    the smallest sum of squared errors (arXiv:1810.05723): what follows a relu is mostly 0, and a few of its values may
    be three times as large as all others.

    Args:
        runs: runs of sentences like those the model is used for.
        tokens: the number of source tokens, and of target tokens, in all runs.
        factors: the factors by which inputs will later be larger than in these runs, [in], by the layer's name.
    """
    seen: dict[str, _Values] = {}
    for run in runs:
        source = is_there(run.batch.source_lengths, run.batch.source.shape[1])
        target = is_there(run.batch.target_lengths, run.batch.target.shape[1])
        for name, states in run.read.items():
            of_source = _reads_source(name)
            values = states[source if of_source else target]
            if name in factors:
                values = values * factors[name]
            if name not in seen:
                seen[name] = _Values(tokens[0 if of_source else 1] * states.shape[2])
            seen[name].add(values)
    return {name: values.best_range() for name, values in seen.items()}


class _Values:
    """Counts many values, and keeps only the largest: all values of a large model would take gigabytes."""

    def __init__(self, total: int) -> None:
        """Expect `total` values; the share COVERED of them, the smallest ones, is not kept."""
        self._kept = total - max(1, int(COVERED * total)) + 1
        self._largest: Floats = np.empty(0, np.float32)
        self._non_zero = 0
        self._levels = 255  # of absolute values, if none is negative

    def add(self, values: Floats) -> None:
        """Add some of the values, float [count, in]."""
        if values.min(initial=0) < 0:
            self._levels = 127
        self._non_zero += int(np.count_nonzero(values))
        sizes = np.abs(values).ravel()
        if len(self._largest) == self._kept:
            sizes = sizes[sizes > self._largest.min()]
        together = np.concatenate([self._largest, sizes])
        if len(together) > self._kept:
            together = np.partition(together, -self._kept)[-self._kept :]
        self._largest = together

    def best_range(self) -> float:
        """Choose among the kept values, each rounded up."""
        ranges = np.unique(steady(self._largest)).astype(np.float64)
        beyond = np.maximum(self._largest - ranges[:, None], 0)
        errors = (beyond**2).sum(1) + self._non_zero * (ranges / self._levels) ** 2 / 12  # 0 has a level of its own
        return float(ranges[errors.argmin()])


def _reads_source(name: str) -> bool:
    return name.startswith("encoder.") or name.endswith("cross_attention.key_value")


def steady(largest: np.float32 | NDArray[np.float32]) -> NDArray[np.float32]:
    """Round measured values up to the next of eight steps in an octave, which adds an eighth at most.

    Another processor sums in another order, and measures other last digits: these must not change the bundle. Every
    operation here is exact.
    """
    mantissa, exponent = np.frexp(largest)
    return np.ldexp(np.ceil(mantissa * np.float32(_STEPS)) / np.float32(_STEPS), exponent)
