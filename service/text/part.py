"""A part of a text, on its way into a document: what stays, and a segment behind it."""

from typing import NamedTuple

from service.segment import Segment
from service.terms import TermPlan
from service.text.attended import SegmentText
from service.text.piece import Tags


class Part(NamedTuple):
    """A part of a text.

    Attributes:
        kept: what stays as it is.
        segment: what is to be decoded behind it; None: nothing.
        tags: that were taken out of the text of the segment; None: it is no markup.
        split: whether a sentence was longer than the model takes, and was split inside.
        source: what the segment was made of, where its translation is to be aligned with that; None: it is not.
        plan: how the terms of the segment get into its translation; None: it has none.
        judged: the text of the segment whose translation shows what was lost; None: nobody asks.
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
