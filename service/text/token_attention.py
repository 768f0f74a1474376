"""A segment and its translation with the attention between their tokens, from which an alignment is made."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.tokenizer import Tokenizer
from service import plugins
from service.decode import Attention
from service.rewriting import Rewriting
from service.text.alignment import Alignment, Side


class TokenAttention(NamedTuple):
    """A segment and its translation, token by token.

    Attributes:
        weights: float [target tokens, source tokens], see :class:`Alignment`.
    """

    weights: NDArray[np.float32]
    source: Side
    target: Side

    def before(self, reading: Rewriting) -> "TokenAttention":
        """Replace the source by the text before a rewriting that made the source."""
        spans = [reading.before(span) for span in self.source.spans]
        return self._replace(source=Side(reading.original, spans))

    def after(self, rewriting: Rewriting) -> "TokenAttention":
        """Replace the target by its text after a rewriting."""
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
        text: the text that was encoded.
        start: where it begins in the whole text, in characters.
        marks: number of language tokens in front of the tokens of the text.
    """

    text: str
    start: int
    marks: int

    def token_attention(
        self, tokenizer: Tokenizer, target_ids: Sequence[int], attention: Sequence[Attention]
    ) -> TokenAttention | None:
        """Join the tokens of the segment, the tokens of a translation, and the attention between them.

        Args:
            attention: attention of each target token; fewer where the engine failed.

        Returns:
            All three, the translation without blanks at its ends; None where there is nothing to align.
        """
        if not target_ids or len(attention) != len(target_ids):
            return None
        spans = tokenizer.source_spans(self.text)
        of_text = np.stack(attention)[:, self.marks : self.marks + len(spans)]
        text, target_spans = tokenizer.target_spans(target_ids)
        return TokenAttention(of_text, Side(self.text, spans), Side(text, target_spans))
