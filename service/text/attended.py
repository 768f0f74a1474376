"""What a model read and wrote of a segment, and how much each token looked at each: which words are aligned; pure."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.text.alignment import Alignment, Side
from service.text.rewriting import Rewriting


class Attended(NamedTuple):
    """A segment and its translation, token by token.

    Attributes:
        weights: float [target tokens, source tokens], see :class:`Alignment`.
        source: what was read.
        target: what was written.
    """

    weights: NDArray[np.float32]
    source: Side
    target: Side

    def before(self, reading: Rewriting) -> "Attended":
        """Give the text that became the source by a rewriting, in place of the source."""
        spans = [reading.before(span) for span in self.source.spans]
        return self._replace(source=Side(reading.original, spans))

    def after(self, rewriting: Rewriting) -> "Attended":
        """Give what the target became by a rewriting, in place of the target."""
        spans = [rewriting.after(span) for span in self.target.spans]
        return self._replace(target=Side(rewriting.text, spans))

    def alignment(self) -> Alignment:
        """Align the words."""
        return Alignment(self.weights, self.source, self.target)
