"""The text of a segment, kept for the alignment of its translation."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dragoman.tokenizer import Tokenizer
from service.decode import Attention
from service.text.alignment import Side
from service.text.attended import Attended


class SegmentText(NamedTuple):
    """What a segment was made of.

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
            tokenizer: of the model.
            target_ids: of the translation.
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
