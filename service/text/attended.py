"""A segment and its translation with the attention between their tokens, of which an alignment is made."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.tokenizer import Tokenizer
from service import plugins
from service.decode import Attention
from service.rewriting import Rewriting
from service.text.alignment import Alignment, Side


class Attended(NamedTuple):
    """A segment and its translation, token by token.

    Attributes:
        weights: float [target tokens, source tokens], see :class:`Alignment`.
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
        """Align the words; raises InvalidRequestError where no plugin can do that."""
        make = plugins.needed(plugins.ALIGNMENTS, "aligns no words")
        alignment: Alignment = make(self.weights, self.source, self.target)
        return alignment


class SegmentText(NamedTuple):
    """The text of a segment.

    Attributes:
        text: that was encoded.
        start: where it begins in the whole text, in characters.
        marks: tokens in front of its own: of languages.
    """

    text: str
    start: int
    marks: int

    def attended(
        self, tokenizer: Tokenizer, target_ids: Sequence[int], attention: Sequence[Attention]
    ) -> Attended | None:
        """Tell how much the tokens of a translation looked at those of the segment.

        Args:
            attention: of each of them; fewer where the engine failed.

        Returns:
            That, the translation without blanks at its ends; None where there is nothing to align.
        """
        if not target_ids or len(attention) != len(target_ids):
            return None
        spans = tokenizer.source_spans(self.text)
        of_text = np.stack(attention)[:, self.marks : self.marks + len(spans)]
        text, target_spans = tokenizer.target_spans(target_ids)
        return Attended(of_text, Side(self.text, spans), Side(text, target_spans))
