"""What chooses the next token of a segment, where that is not its probability alone: chance, or the caller."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.decode import Decode
from service.engine.sampling import draw, draws

# Gives the next token, by what gives the logits [vocabulary_size] of the segment's row.
Choose: TypeAlias = Callable[[Callable[[], NDArray[np.floating]]], int]


def chooser_of(decode: Decode) -> Choose:
    """Give what chooses all tokens of a segment that is scored or drawn, one after the other."""
    if decode.scored_ids:
        given = iter(decode.scored_ids)
        return lambda _: next(given)
    sampling = decode.decoding.sampling
    assert sampling is not None, "the most probable tokens are taken"
    chances = draws(sampling)
    return lambda logits: draw(logits(), sampling, chances.random())
