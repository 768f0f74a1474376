"""From what a step has computed to the token of each row."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.decoding.beam import Best
from service.decoding.scores import log_probability


class Selection(NamedTuple):
    """What each row is continued with.

    Attributes:
        tokens: the most probable one of each row; None where the decoder failed on it.
        log_probabilities: of these, by row, where they are wanted.
        best: the best tokens of the rows that a beam search looks at, but for those on which the search failed.
    """

    tokens: Sequence[int | None]
    log_probabilities: Mapping[int, float]
    best: Mapping[int, Best]


def select(
    ids: Sequence[int | None],
    scored: Sequence[int],
    logits_of: Callable[[int], NDArray[np.floating]],
    best: Mapping[int, Best],
) -> Selection:
    """Put together what a step has computed.

    Args:
        ids: the most probable ones, which the decoder graph finds; None where it failed.
        scored: rows whose log-probabilities are wanted.
        logits_of: gives the logits of a row, [vocabulary_size].
        best: the best tokens of the rows that a beam search looks at.
    """
    chosen = ((row, ids[row]) for row in scored)
    log_probabilities = {row: log_probability(logits_of(row), token) for row, token in chosen if token is not None}
    return Selection(ids, log_probabilities, best)
