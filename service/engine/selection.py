"""What a step has computed for its rows."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.engine.beam import Best


class Selection(NamedTuple):
    """What each row may be continued with.

    Attributes:
        tokens: the next one of each row; None where the decoder failed on it.
        best: of the rows that a search looks at or whose log-probabilities are wanted, but for those on which the
            search graph failed.
        attention: how much the rows of which that is wanted looked at each token of the source, [source tokens].
        chosen: those of `tokens` that are not left to the decoder graph, by row.
    """

    tokens: Sequence[int | None]
    best: Mapping[int, Best] = {}
    attention: Mapping[int, NDArray[np.float32]] = {}
    chosen: Mapping[int, int | None] = {}
