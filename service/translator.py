"""The words around the engine: text to a document of segments, and decoded segments back to text."""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

from dragoman.bundle import TARGET_FACTOR, TARGET_OFFSET, Manifest, target_limit
from dragoman.tokenizer import Tokenizer
from service import segmentation
from service.request import FinishReason, Segment
from service.settings import Settings
from service.terms import Terms

# The longest piece of a SentencePiece vocabulary by default; bounds the work of measuring an endless text.
_CHARACTERS_PER_TOKEN: Final = 16
_GROW_SEGMENTS: Final = 64  # at most so many are decoded to text in one go, on the event loop
_WORST_FIRST: Final = (FinishReason.LENGTH, FinishReason.REPETITION)

OnProgress = Callable[[Segment], None]


class Decodes(Protocol):
    """What decodes segments offline: the engine."""

    def decode(self, segments: list[Segment]) -> None:
        """Decode until all segments are finished."""


class Limits(NamedTuple):
    """Where a segment ends that does not end by itself.

    Attributes:
        factor: target tokens it may have for each source token ...
        offset: ... and on top of that.
        stop_repetition: whether it ends where it goes round in circles.
    """

    factor: float = TARGET_FACTOR
    offset: int = TARGET_OFFSET
    stop_repetition: bool = True

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """Those of a server."""
        return cls(settings.max_target_factor, settings.max_target_offset, settings.stop_repetition)


_DEFAULT_LIMITS: Final = Limits()
_DEFAULT_TERMS: Final = Terms()


class TextResult(NamedTuple):
    """The translation of one text.

    Attributes:
        text: the translation, with the separators of the source.
        source_tokens: tokens that the model read, without the end-of-sentence tokens.
        target_tokens: tokens that the model wrote, without the end-of-sentence tokens.
        finish_reason: LENGTH if any segment was cut off at its limit, else REPETITION if any was stopped, else EOS.
        segments: into how many segments the text was split.
        mean_log_probability: of all tokens that the model wrote, the end-of-sentence tokens counted, in natural
            logarithms; None where it was not asked for, or there is no segment.
    """

    text: str
    source_tokens: int
    target_tokens: int
    finish_reason: FinishReason
    segments: int
    mean_log_probability: float | None


class Document:
    """One text on its way: its segments, the separators around them, and how much of it was handed out.

    Attributes:
        segments: to be decoded, in the order of the text; none where the text has no words.
        separators: what stands around them; one more than there are segments.
    """

    def __init__(self, segments: list[Segment], separators: list[str], tokenizer: Tokenizer) -> None:
        self.segments = segments
        self.separators = separators
        self._tokenizer = tokenizer
        self._place = -1  # the segment whose text is being handed out; -1: not even the first separator was
        self._given = 0  # characters of that segment that were

    def result(self) -> TextResult:
        """Put the translation together.

        Raises:
            DragomanError: the first error of a segment.
        """
        for segment in self.segments:
            if segment.error is not None:
                raise segment.error
        reasons = {segment.finish_reason for segment in self.segments}
        return TextResult(
            text=segmentation.join(self.separators, [self._text(segment) for segment in self.segments]),
            source_tokens=sum(len(segment.source_ids) - 1 for segment in self.segments),
            target_tokens=sum(len(segment.target_ids) for segment in self.segments),
            finish_reason=next((reason for reason in _WORST_FIRST if reason in reasons), FinishReason.EOS),
            segments=len(self.segments),
            mean_log_probability=self._mean_log_probability(),
        )

    def grow(self) -> str:
        """Hand out the text that is new since the last call and can no longer change; "" if there is none.

        All that was handed out, once every segment is finished and this returned "", is the text of
        :meth:`result`. A segment's text waits for the segments before it. One call takes a bounded number of
        segments, so call it again until it returns "".
        """
        pieces = []
        for _ in range(_GROW_SEGMENTS):
            if self._place == len(self.segments):
                break
            piece, complete = self._next_piece()
            pieces.append(piece)
            if not complete:
                break
        return "".join(pieces)

    def _next_piece(self) -> tuple[str, bool]:
        """Hand out of the current segment what is settled; if it is complete, go on to the next."""
        if self._place < 0:
            complete, text = True, ""
        else:
            segment = self.segments[self._place]
            complete = segment.finished  # read before the ids: the engine's thread may finish it in between
            text = self._text(segment) if complete else self._settled_text(segment)
        piece = text[self._given :]
        self._given += len(piece)
        if complete:
            piece += self.separators[self._place + 1]
            self._place += 1
            self._given = 0
        return piece, complete

    def _mean_log_probability(self) -> float | None:
        if not (self.segments and self.segments[0].wants_log_probability):  # all of a text want the same
            return None
        tokens = sum(segment.decoded_tokens for segment in self.segments)
        return sum(segment.log_probability for segment in self.segments) / tokens

    def _text(self, segment: Segment) -> str:
        # Blanks that a model writes at an end would come on top of the separators.
        return self._tokenizer.decode(segment.target_ids).strip()

    def _settled_text(self, segment: Segment) -> str:
        """The text so far, less what a later token can still turn into something else.

        A character that is written in bytes reads as U+FFFD until its last byte is there, and a blank at the
        end may turn out to be the last.
        """
        return self._tokenizer.decode(list(segment.target_ids)).strip().rstrip("\ufffd").rstrip()


class Translator:
    """Makes documents for one model."""

    def __init__(self, manifest: Manifest, tokenizer: Tokenizer, limits: Limits = _DEFAULT_LIMITS) -> None:
        self._manifest = manifest
        self._tokenizer = tokenizer
        self._limits = limits

    def prepare(
        self,
        text: str,
        terms: Terms = _DEFAULT_TERMS,
        on_progress: OnProgress = lambda segment: None,
    ) -> Document:
        """Split a text and encode its segments.

        Args:
            text: any text, without lone surrogates.
            terms: what the call asks for.
            on_progress: called on the event loop, see :class:`Segment`.
        """
        ids: dict[str, list[int]] = {}
        split = segmentation.split(text, lambda piece: self._fits(piece, ids))
        separators, segments = split.separators[:1], []
        for piece, separator in zip(split.segments, split.separators[1:], strict=True):
            if not ids[piece]:  # nothing that the model could see, such as a filler character
                separators[-1] += piece + separator
                continue
            segments.append(
                Segment(
                    source_ids=[*ids[piece], self._manifest.eos_id],
                    max_target_tokens=self._limit(len(ids[piece]) + 1, terms.max_target_tokens),
                    deadline_s=terms.deadline_s,
                    wants_deltas=terms.wants_deltas,
                    on_progress=on_progress,
                    stops_at_repetition=self._limits.stop_repetition,
                    wants_log_probability=terms.wants_log_probability,
                    client=terms.client,
                    priority=terms.priority,
                )
            )
            separators.append(separator)
        return Document(segments, separators, self._tokenizer)

    def translate_offline(
        self, engine: Decodes, texts: Iterable[str], max_target_tokens: int | None = None
    ) -> list[TextResult]:
        """Translate texts in this thread, all of them together.

        Args:
            engine: of the same bundle, not started.
            texts: of any length.
            max_target_tokens: of each segment, below its limit; None or 0: its limit.

        Raises:
            DragomanError: a segment could not be decoded.
        """
        documents = [self.prepare(text, Terms(max_target_tokens)) for text in texts]
        engine.decode([segment for document in documents for segment in document.segments])
        return [document.result() for document in documents]

    def _limit(self, source_tokens: int, asked: int | None) -> int:
        longest = self._manifest.max_target_tokens
        limit = target_limit(source_tokens, longest, self._limits.factor, self._limits.offset)
        return min(asked, limit) if asked else limit

    def _fits(self, piece: str, ids: dict[str, list[int]]) -> bool:
        """Tell whether a piece is short enough, and keep its ids if it was not hopelessly long."""
        limit = self._manifest.max_source_tokens - 1  # one place is for the end-of-sentence id
        if len(piece) > limit * _CHARACTERS_PER_TOKEN:
            return False
        encoded = self._tokenizer.encode(piece)
        fits = len(encoded) <= limit
        if fits or len(piece) == 1:
            ids[piece] = encoded
        return fits
