"""The range of the inputs of each linear layer, measured on real sentences."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from export.examples import is_there
from export.products import Ranges
from export.teacher import Floats, Seen

# The share of a layer's input values inside its range; the few values beyond it saturate, and in return all others are
# represented more finely.
COVERED = 0.9999
# Steps of a mantissa from 0.5 to 1: eight in an octave.
_STEPS = 16


def calibrate(runs: Iterable[Seen], tokens: tuple[int, int], factors: Mapping[str, Floats]) -> Ranges:
    """Measure the range of the absolute input values of each linear layer, at positions that are no padding.

    Args:
        runs: runs of sentences like those the model is used for.
        tokens: the number of source tokens, and of target tokens, in all runs.
        factors: the factors by which inputs will later be larger than in these runs, [in], by the layer's name.
    """
    seen: dict[str, _Largest] = {}
    for run in runs:
        source = is_there(run.batch.source_lengths, run.batch.source.shape[1])
        target = is_there(run.batch.target_lengths, run.batch.target.shape[1])
        for name, states in run.read.items():
            of_source = _reads_source(name)
            values = states[source if of_source else target]
            if name in factors:
                values = values * factors[name]
            if name not in seen:
                seen[name] = _Largest(tokens[0 if of_source else 1] * states.shape[2])
            seen[name].add(np.abs(values).ravel())
    return {name: float(steady(largest.last)) for name, largest in seen.items()}


class _Largest:
    """Keeps only the largest of many values: all values of a large model would take gigabytes."""

    def __init__(self, total: int) -> None:
        """Expect `total` values; the share COVERED of them, the smallest ones, lies within the range."""
        self._count = total - max(1, int(COVERED * total)) + 1
        self._values: Floats = np.empty(0, np.float32)

    def add(self, values: Floats) -> None:
        """Add some of the values, float [count]."""
        if len(self._values) == self._count:
            values = values[values > self._values.min()]
        together = np.concatenate([self._values, values])
        if len(together) > self._count:
            together = np.partition(together, -self._count)[-self._count :]
        self._values = together

    @property
    def last(self) -> np.float32:
        """The smallest of the kept values: the end of the range."""
        return self._values.min()  # type: ignore[no-any-return]


def _reads_source(name: str) -> bool:
    return name.startswith("encoder.") or name.endswith("cross_attention.key_value")


def steady(largest: np.float32 | NDArray[np.float32]) -> NDArray[np.float32]:
    """Round measured values up to the next of eight steps in an octave, which adds an eighth at most.

    Another processor sums in another order, and measures other last digits: these must not change the bundle. Every
    operation here is exact.
    """
    mantissa, exponent = np.frexp(largest)
    return np.ldexp(np.ceil(mantissa * np.float32(_STEPS)) / np.float32(_STEPS), exponent)
