"""From what a step has computed to the token of each row."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.decoding.scores import log_probability


class Selection(NamedTuple):
    """What each row is continued with.

    Attributes:
        tokens: of each row; None where the decoder failed on it.
        parents: of each row, the row whose translation it continues.
        log_probabilities: of the tokens, by row, where they are wanted.
    """

    tokens: Sequence[int | None]
    parents: Sequence[int]
    log_probabilities: Mapping[int, float]


def greedy(
    ids: Sequence[int | None], scored: Sequence[int], logits_of: Callable[[int], NDArray[np.floating]]
) -> Selection:
    """Choose the most probable token of each row, which continues that row.

    Args:
        ids: the most probable ones, which the decoder graph finds; None where it failed.
        scored: rows whose log-probabilities are wanted.
        logits_of: gives the logits of a row, [vocabulary_size].
    """
    chosen = ((row, ids[row]) for row in scored)
    log_probabilities = {row: log_probability(logits_of(row), token) for row, token in chosen if token is not None}
    return Selection(ids, range(len(ids)), log_probabilities)
