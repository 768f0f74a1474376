"""Tokens drawn at random, of logits and random numbers.

As in Hugging Face's `generate`, logits are divided by the temperature, then the `top_k` most probable tokens are kept
(Fan et al., arXiv:1805.04833), then of these the most probable ones that together reach `top_p` (Holtzman et al.,
arXiv:1904.09751). Of what is kept, one is drawn by the inverse of the cumulative distribution.
"""

from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from service.engine.rows import Choosing
from service.engine.step import Sight
from service.options import SEED_BITS, Sampling


@dataclass(eq=False)
class Sampled(Choosing):
    """Takes tokens that are drawn."""

    sampling: Sampling
    chances: Random = field(init=False)

    def __post_init__(self) -> None:
        self.chances = draws(self.sampling)

    def choose(self, slot: int, sight: Sight) -> int:
        """Draw one."""
        return draw(sight.logits_of(slot), self.sampling, self.chances.random())


def draws(sampling: Sampling) -> Random:
    """Give the random numbers of a segment: the same wherever, whenever and beside whatever it is decoded."""
    return Random(sampling.segment << SEED_BITS | sampling.seed)


def draw(logits: NDArray[np.floating], sampling: Sampling, chance: float) -> int:
    """Draw a token.

    Args:
        logits: [vocabulary], of any precision; at least one finite, and none NaN.
        sampling: what is kept of them.
        chance: a random number in [0, 1). The tokens lie on this range by descending probability, of equals the smaller
            id first: 0 is the most probable one.
    """
    weights = logits.astype(np.float64)
    weights -= weights.max()
    weights /= sampling.temperature
    np.exp(weights, out=weights)  # in float64 and of one row alone: what stands beside it cannot move a bit of it
    if 0 < sampling.top_k < len(weights):
        least = np.partition(weights, -sampling.top_k)[-sampling.top_k]
        kept = _by_weight(weights, least)[: sampling.top_k]
        total = weights[kept].sum()
    else:
        total = weights.sum()
        # All tokens of less weight than this have less together than what lies behind the place that is looked for.
        share = sampling.top_p if sampling.top_p < 1 else chance
        kept = _by_weight(weights, (1 - share) * total / len(weights))
    reached = weights[kept].cumsum()
    if sampling.top_p < 1:
        total = reached[_first(reached >= sampling.top_p * total)]
    return int(kept[_first(reached > chance * total)])


def _by_weight(weights: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    """List the ids of the tokens of at least this weight, the heaviest first, of equals the smaller id first."""
    ids = np.flatnonzero(weights >= least)
    ordered: NDArray[np.intp] = ids[np.argsort(-weights[ids], kind="stable")]
    return ordered


def _first(reached: NDArray[np.bool_]) -> int:
    """Give the place of the first that is true; the last one where rounding has left none."""
    return int(reached.argmax()) if reached[-1] else len(reached) - 1
