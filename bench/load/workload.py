"""Which texts a load test asks for again, drawn before it starts. Pure, with seeds."""

import numpy as np
from numpy.typing import NDArray

# How many texts are asked for again and again: this number, and at most every second one there is.
POPULAR_TEXTS = 1000
_EXPONENT = 1.1  # of their Zipf's law


def repeated(texts: int, count: int, share: float, seed: int) -> NDArray[np.int64]:
    """Choose the text of each draw: some are asked for again and again, by Zipf's law, the others in turn.

    The first texts, POPULAR_TEXTS or half of them, are the popular ones.

    Returns:
        [count] indices of texts.
    """
    random = np.random.default_rng(seed)
    popular = max(1, min(POPULAR_TEXTS, texts // 2))
    weights = np.arange(1, popular + 1, dtype=np.float64) ** -_EXPONENT
    drawn = random.choice(popular, count, p=weights / weights.sum())
    rare = random.random(count) >= share
    in_turn = np.arange(int(rare.sum()), dtype=np.int64)
    # A single text is popular and all the others as well.
    drawn[rare] = popular + in_turn % (texts - popular) if texts > popular else 0
    return drawn
