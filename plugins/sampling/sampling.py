"""Sampling of tokens from logits and random numbers.

As in Hugging Face's `generate`, logits are divided by the temperature, then the `top_k` most probable tokens are kept
(Fan et al., arXiv:1805.04833), then of these the most probable ones that together reach `top_p` (Holtzman et al.,
arXiv:1904.09751). One of the kept tokens is drawn by the inverse of the cumulative distribution.
"""

from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from service.engine.rows import Choosing
from service.engine.step import RunOutputs
from service.options import SEED_BITS, Sampling


@dataclass(eq=False)
class Sampled(Choosing):
    """Chooses tokens by sampling."""

    sampling: Sampling
    chances: Random = field(init=False)

    def __post_init__(self) -> None:
        self.chances = draws(self.sampling)

    def choose(self, slot: int, outputs: RunOutputs) -> int:
        """Draw a token."""
        return draw(outputs.logits_of(slot), self.sampling, self.chances.random())


def draws(sampling: Sampling) -> Random:
    """Give the random numbers of a segment, which do not depend on where, when and beside what it is decoded."""
    return Random(sampling.segment << SEED_BITS | sampling.seed)


def draw(logits: NDArray[np.floating], sampling: Sampling, chance: float) -> int:
    """Draw a token.

    Args:
        logits: [vocabulary], of any precision; at least one finite, and none NaN.
        chance: a random number in [0, 1). The tokens cover this range by descending probability, equal ones by
            ascending id, so 0 selects the most probable token.
    """
    weights = logits.astype(np.float64)
    weights -= weights.max()
    weights /= sampling.temperature
    np.exp(weights, out=weights)  # float64 and a single row: other rows cannot change a bit of the result
    if 0 < sampling.top_k < len(weights):
        least = np.partition(weights, -sampling.top_k)[-sampling.top_k]
        kept = _by_weight(weights, least)[: sampling.top_k]
        total = weights[kept].sum()
    else:
        total = weights.sum()
        # Tokens below this weight have together less weight than remains after the place to find, so they are not
        # needed.
        share = sampling.top_p if sampling.top_p < 1 else chance
        kept = _by_weight(weights, (1 - share) * total / len(weights))
    reached = weights[kept].cumsum()
    if sampling.top_p < 1:
        total = reached[_first(reached >= sampling.top_p * total)]
    return int(kept[_first(reached > chance * total)])


def _by_weight(weights: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    """List the ids of tokens with at least this weight, heaviest first, equal ones by ascending id."""
    ids = np.flatnonzero(weights >= least)
    ordered: NDArray[np.intp] = ids[np.argsort(-weights[ids], kind="stable")]
    return ordered


def _first(reached: NDArray[np.bool_]) -> int:
    """Give the index of the first true value; the last index if rounding has left none."""
    return int(reached.argmax()) if reached[-1] else len(reached) - 1
