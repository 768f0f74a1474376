"""A part of a text, for a document: text that stays as it is, and a segment after it."""

from typing import NamedTuple

from service.segment import Segment
from service.terms import TermPlan
from service.text.piece import Tags
from service.text.token_attention import SegmentText


class Part(NamedTuple):
    """A part of a text.

    Attributes:
        kept: text that stays as it is.
        segment: the segment after `kept`; None: there is none.
        tags: tags that were taken out of the text of the segment; None: the text is no markup.
        split: whether a sentence was longer than the model takes, and was split inside.
        source: text of the segment, where its translation is to be aligned with it; None: it is not to be aligned.
        plan: how the terms of the segment get into its translation; None: the segment has no terms.
        judged: text of the segment by which the quality is estimated; None: no estimate is wanted.
        in_capitals: whether the segment is a sentence in capitals that was read in small letters.
    """

    kept: str
    segment: Segment | None = None
    tags: Tags | None = None
    split: bool = False
    source: SegmentText | None = None
    plan: TermPlan | None = None
    judged: str | None = None
    in_capitals: bool = False
