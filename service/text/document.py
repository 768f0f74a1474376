"""One text during a call: read part by part, decoded segment by segment, and put together again.

A document holds the parts that were read and are not translated yet, and the text of the translated parts. So a text of
any length takes only the memory of the parts that are being translated, and of its translation.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from dragoman.errors import DragomanError
from dragoman.tokenizer import Tokenizer
from service.decode import Attention, Decode, FinishReason, worst
from service.failures import told
from service.rewriting import Span
from service.segment import Segment
from service.text.alignment import Alignment, Link
from service.text.alternatives import Alternatives, Choice, new_alternatives
from service.text.capitals import in_capitals
from service.text.part import Part
from service.text.result import TextResult, TokenScore
from service.text.text_quality import TextQuality

_GROW_WEIGHT: Final = 64  # segments, and tags in them, that are made text at once, on the event loop
_ALIGNED_WEIGHT: Final = 32  # plain segments that are made text in the time of one alignment ...
_JUDGED_WEIGHT: Final = 8  # ... and of one quality estimate


class _Awaited(NamedTuple):
    segment: Segment
    part: Part | None  # None: only the text of the translation is wanted
    weight: int


class _Restored(NamedTuple):
    text: str
    untagged: str
    alignment: Alignment | None = None
    misses: Sequence[str] = ()


class Document:
    """One text, from its parts to its translation.

    All methods except :meth:`read` are for one thread at a time, usually the event loop's.

    Attributes:
        complete: whether all of the text has been read.
        text_bytes: bytes in UTF-8 of the text that is to be translated, and of a translation that is to be scored.
        characters: characters of the text; they bound the time of one call of `read`.
        weight: the work that is left for making text: segments that are not yet text, and tags inside them, counted
            once for each text that is made of them.
    """

    def __init__(
        self,
        parts: Iterator[Part],
        tokenizer: Tokenizer,
        *,
        text_bytes: int,
        characters: int,
        unknown_id: int,
        wants_log_probability: bool,
        alternatives: int = 0,
        alignments: bool = False,
        quality: TextQuality | None = None,
    ) -> None:
        """Make a text of which nothing has been read.

        Args:
            unknown_id: id of pieces of the source that the model has no token for.
            quality: estimates the quality of the segments, whose parts have `judged`; None: it is not wanted.
        """
        self.complete = False
        self.text_bytes = text_bytes
        self.characters = characters
        self.weight = 0
        self._parts = parts
        self._tokenizer = tokenizer
        self._unknown_id = unknown_id
        self._wants_log_probability = wants_log_probability
        self._wanted = alternatives
        self._alternatives = new_alternatives(alternatives) if alternatives else None
        self._term_segments = 0
        self._misses: dict[str, None] = {}
        self._wants_alignments = alignments
        self._links: list[Link] = []
        self._quality = quality
        self._characters = 0  # of `_text`
        self._waiting: deque[str | _Awaited] = deque()  # read and not yet text
        self._text: list[str] = []
        self._given = 0  # pieces of `_text` that were handed out ...
        self._begun = 0  # ... and characters of the segment after them
        # Of the segments that are text:
        self._segments = self._source_tokens = self._target_tokens = self._decoded_tokens = self._unknown_pieces = 0
        self._log_probability = 0.0
        self._token_scores: list[TokenScore] = []
        self._reasons: set[FinishReason | None] = set()
        self._error: DragomanError | None = None
        self._split = False

    @property
    def segments(self) -> list[Segment]:
        """The segments that were read and are not yet text, in the order of the text."""
        return [part.segment for part in self._waiting if not isinstance(part, str)]

    def read(self, count: int) -> list[Part]:
        """Make at most `count` parts of the next piece of the text; on any thread, and one call at a time.

        Returns:
            The parts, for :meth:`add`; fewer than `count` at the end of the text.
        """
        return list(islice(self._parts, count))

    def add(self, parts: Sequence[Part], *, last: bool) -> list[Segment]:
        """Take over parts that were read, in their order.

        Args:
            last: whether there are no more parts.

        Returns:
            The segments of the parts.
        """
        segments = []
        for part in parts:
            kept, segment, tags, split, source, plan, judged, in_capitals = part
            self._split |= split
            if kept:
                self._waiting.append(kept)
            if segment is not None:
                is_asked = tags is not None or source is not None or plan is not None or judged is not None
                is_plain = not (is_asked or in_capitals or self._wanted)
                awaited = _Awaited(segment, None, 1) if is_plain else _Awaited(segment, part, self._weight_of(part))
                self.weight += awaited.weight
                self._waiting.append(awaited)
                segments.append(segment)
        self.complete = last
        return segments

    def read_all(self) -> None:
        """Read the rest of the text at once."""
        self.add(list(self._parts), last=True)

    def settle(self, weight: float = math.inf) -> bool:
        """Make text of the finished segments at the front.

        Args:
            weight: work after which it stops; see the attribute.

        Returns:
            Whether there is new text.
        """
        before = len(self._text)
        while self._waiting and weight > 0:
            front = self._waiting[0]
            if isinstance(front, str):
                text = front
                if self._alternatives is not None:
                    self._alternatives.keep(text)
            elif front.segment.finished:
                decode = front.segment.decode
                if front.part is None:
                    text = self._tokenizer.decode(decode.target_ids).strip()
                else:
                    text = self._translate(front.part, decode)
                    if self._alternatives is not None:
                        self._choose(self._alternatives, front.part, decode, text)
                self._count(front.segment)
                self.weight -= front.weight
                weight -= front.weight
            else:
                break
            self._text.append(text)
            self._characters += len(text)
            self._waiting.popleft()
        return len(self._text) > before

    def grow(self) -> str:
        """Hand out the text that is new since the last call and can no longer change; "" if there is none.

        Once every segment is finished and this has returned "", the texts handed out are the text of :meth:`result`.
        A segment's text waits for the segments before it; with tags or terms inside, it also waits for its own end.
        One call takes a bounded number of segments, so call it again until it returns "".
        """
        text = self._new_text()
        # Finished segments may have no text, but "" would mean that there is no new text.
        while not text and self.settle(_GROW_WEIGHT):
            text = self._new_text()
        return text + self._begin_next()

    def result(self) -> TextResult:
        """Put the translation together; all segments must be finished.

        Raises:
            DragomanError: the first error of a segment.
        """
        self.settle()
        error = self._error
        if self._waiting and error is None:
            error = next((segment.decode.error for segment in self.segments if segment.decode.error is not None), None)
        if error is not None:
            raise error
        return TextResult(
            text="".join(self._text),
            source_tokens=self._source_tokens,
            target_tokens=self._target_tokens,
            finish_reason=worst(self._reasons),
            segments=self._segments,
            mean_log_probability=(
                self._log_probability / self._decoded_tokens if self._wants_log_probability and self._segments else None
            ),
            unknown_pieces=self._unknown_pieces,
            split=self._split,
            alternatives=() if self._alternatives is None else self._alternatives.result(),
            log_probability=self._log_probability,
            token_scores=self._token_scores,
            alignments=self._links,
            term_segments=self._term_segments,
            glossary_misses=tuple(self._misses),
            quality_estimate=None if self._quality is None else self._quality.estimate,
            segment_qualities=() if self._quality is None else self._quality.segments,
        )

    def outcome(self) -> TextResult | DragomanError:
        """As :meth:`result`, but return the error: a failed text does not affect the other texts of its call."""
        try:
            return self.result()
        except Exception as error:
            return told(error)

    def _new_text(self) -> str:
        """Hand out the new text of finished segments."""
        if self._given == len(self._text):
            return ""
        text = "".join(self._text[self._given :])[self._begun :]
        self._given, self._begun = len(self._text), 0
        return text

    def _begin_next(self) -> str:
        """Hand out the part of the segment in front that can no longer change.

        A character that is written in bytes reads as U+FFFD until its last byte is there, and a blank at the end
        is dropped if no text follows. Tags and terms are put back only when the whole segment is there.
        """
        front = self._waiting[0] if self._waiting else ""
        if isinstance(front, str):
            return ""
        if front.part is not None and (front.part.tags is not None or front.part.plan is not None):
            return ""
        text = self._tokenizer.decode(list(front.segment.decode.target_ids)).strip().rstrip("\ufffd").rstrip()
        if front.part is not None and front.part.in_capitals:
            text = text.upper()
        text = text[self._begun :]
        self._begun += len(text)
        return text

    def _weight_of(self, part: Part) -> int:
        aligned = 0 if part.source is None else _ALIGNED_WEIGHT
        terms = 0 if part.plan is None else len(part.plan.matches)
        marks = 0 if part.tags is None else len(part.tags.marks)
        judged = 0 if part.judged is None else _JUDGED_WEIGHT
        return judged + max(1, self._wanted) * (1 + aligned + terms + marks)

    def _translate(self, part: Part, decode: Decode) -> str:
        """Make the translation of a segment; note its quality and links if wanted, and the terms that it lacks."""
        text, untagged, alignment, misses = self._restored(part, decode.target_ids, decode.attention)
        if self._quality is not None and part.judged is not None and decode.error is None:
            unknown, start = decode.source_ids.count(self._unknown_id), self._characters
            self._quality.add(part.judged, untagged, decode, unknown, start, start + len(text))
        self._term_segments += part.plan is not None
        self._misses.update(dict.fromkeys(misses))
        if self._wants_alignments and alignment is not None and part.source is not None:
            self._links += alignment.links(part.source.start, self._characters)
        return text

    def _restored(self, part: Part, target_ids: Sequence[int], attention: Sequence[Attention]) -> _Restored:
        """Make the text of a translation, and align it where that is wanted."""
        # Blanks that the model writes at the ends would come in addition to the separators that are kept.
        text, misses = self._tokenizer.decode(target_ids).strip(), tuple[str, ...]()
        kept: Sequence[Span] = ()
        token_attention = part.source and part.source.token_attention(self._tokenizer, target_ids, attention)
        if part.plan is not None:
            text, misses, rewriting = part.plan.restore(text, token_attention and token_attention.alignment().target_of)
            token_attention = token_attention and token_attention.before(part.plan.reading).after(rewriting)
            kept = rewriting.kept
        elif part.in_capitals:
            token_attention, text = token_attention and token_attention.after(in_capitals(text)), text.upper()
        is_aligned = self._wants_alignments or part.tags is not None
        alignment = token_attention.alignment() if token_attention and is_aligned else None
        restored = text if part.tags is None else part.tags.restore(text, alignment, kept)
        return _Restored(restored, text, alignment, misses)

    def _choose(self, alternatives: Alternatives, part: Part, decode: Decode, text: str) -> None:
        """Continue the alternatives with a segment; a failed segment adds none, and its text has no alternatives."""
        if decode.error is not None:
            return
        first, *others = decode.best[: self._wanted]
        choices = [Choice(text, first)]
        choices += [Choice(self._restored(part, each.target_ids, each.attention).text, each) for each in others]
        alternatives.add(choices)

    def _count(self, segment: Segment) -> None:
        decode = segment.decode
        self._segments += 1
        self._source_tokens += segment.source_tokens
        self._target_tokens += len(decode.target_ids)
        self._unknown_pieces += decode.source_ids.count(self._unknown_id)
        if self._wants_log_probability:
            self._decoded_tokens += decode.decoded_tokens
            self._log_probability += decode.log_probability
        if decode.scored_ids:
            pieces = self._tokenizer.target_pieces(decode.scored_ids)
            self._token_scores += map(TokenScore, pieces, decode.token_log_probabilities)
        self._reasons.add(decode.finish_reason)
        self._error = self._error or decode.error
