"""The words around the engine: text to a document of segments, and decoded segments back to text."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, Protocol

from dragoman.bundle import TARGET_FACTOR, TARGET_OFFSET, Manifest, target_limit
from dragoman.tokenizer import Tokenizer
from service import markup, segmentation
from service.inlay import Inlay
from service.request import FinishReason, Segment
from service.settings import Settings
from service.terms import Terms

# The longest piece of a SentencePiece vocabulary by default; bounds the work of measuring an endless text.
_CHARACTERS_PER_TOKEN: Final = 16
_GROW_WEIGHT: Final = 64  # segments, and tags in them, that are made text in one go, on the event loop
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
        unknown_pieces: pieces of the source that the model has no token for.
        split: whether a sentence was longer than the model takes, and was split inside.
    """

    text: str
    source_tokens: int
    target_tokens: int
    finish_reason: FinishReason
    segments: int
    mean_log_probability: float | None
    unknown_pieces: int
    split: bool


class Document:
    """One text on its way: its segments, the separators around them, and how much of it was handed out.

    Attributes:
        segments: to be decoded, in the order of the text; none where the text has no words.
        separators: what stands around them; one more than there are segments.
    """

    def __init__(
        self,
        segments: list[Segment],
        separators: list[str],
        tokenizer: Tokenizer,
        *,
        inlays: list[Inlay],
        unknown_pieces: int,
        split: bool,
    ) -> None:
        """Put a document together.

        Args:
            segments: to be decoded.
            separators: around them.
            tokenizer: of the model.
            inlays: of HTML, the tags inside each segment; none for plain text.
            unknown_pieces: as in the result.
            split: as in the result.
        """
        self.segments = segments
        self.separators = separators
        self._tokenizer = tokenizer
        self._inlays = inlays
        self._unknown_pieces = unknown_pieces
        self._split = split
        self._place = -1  # the segment whose text is being handed out; -1: not even the first separator was
        self._given = 0  # characters of that segment that were

    @property
    def weight(self) -> int:
        """Segments, and tags inside them: what it takes time to put together."""
        return sum(map(self._weight, range(len(self.segments))))

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
            text=segmentation.join(self.separators, [self._text(place) for place in range(len(self.segments))]),
            source_tokens=sum(len(segment.source_ids) - 1 for segment in self.segments),
            target_tokens=sum(len(segment.target_ids) for segment in self.segments),
            finish_reason=next((reason for reason in _WORST_FIRST if reason in reasons), FinishReason.EOS),
            segments=len(self.segments),
            mean_log_probability=self._mean_log_probability(),
            unknown_pieces=self._unknown_pieces,
            split=self._split,
        )

    def grow(self) -> str:
        """Hand out the text that is new since the last call and can no longer change; "" if there is none.

        All that was handed out, once every segment is finished and this returned "", is the text of
        :meth:`result`. A segment's text waits for the segments before it, and with tags inside for its own end. One
        call takes a bounded number of segments, so call it again until it returns "".
        """
        text, complete, weight = "", True, 0
        # Segments without text are cheap, and a "" would say that this is all.
        while complete and self._place < len(self.segments) and not (text and weight >= _GROW_WEIGHT):
            weight += self._weight(self._place)
            piece, complete = self._next_piece()
            text += piece
        return text

    def _next_piece(self) -> tuple[str, bool]:
        """Hand out of the current segment what is settled; if it is complete, go on to the next."""
        if self._place < 0:
            complete, text = True, ""
        else:
            segment = self.segments[self._place]
            complete = segment.finished  # read before the ids: the engine's thread may finish it in between
            text = self._text(self._place) if complete else self._settled_text(segment)
        piece = text[self._given :]
        self._given += len(piece)
        if complete:
            piece += self.separators[self._place + 1]
            self._place += 1
            self._given = 0
        return piece, complete

    def _weight(self, place: int) -> int:
        return 1 + (len(self._inlays[place].marks) if self._inlays and place >= 0 else 0)

    def _mean_log_probability(self) -> float | None:
        if not (self.segments and self.segments[0].wants_log_probability):  # all of a text want the same
            return None
        tokens = sum(segment.decoded_tokens for segment in self.segments)
        return sum(segment.log_probability for segment in self.segments) / tokens

    def _text(self, place: int) -> str:
        # Blanks that a model writes at an end would come on top of the separators.
        text = self._tokenizer.decode(self.segments[place].target_ids).strip()
        return self._inlays[place].fill(text) if self._inlays else text

    def _settled_text(self, segment: Segment) -> str:
        """The text so far, less what a later token can still turn into something else.

        A character that is written in bytes reads as U+FFFD until its last byte is there, and a blank at the
        end may turn out to be the last. Where tags go, the whole text decides.
        """
        if self._inlays:
            return ""
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
        splits: list[segmentation.Split] = []
        separators: list[str] = []
        segments: list[Segment] = []
        inlays: list[Inlay] = []
        fixed: list[str] = []  # of the separator that is next
        for piece in self._pieces(text, terms, ids, splits):
            if isinstance(piece, str):
                fixed.append(piece)
            elif not ids[piece.text]:  # nothing that the model could see, such as a filler character
                fixed.append(piece.fill(piece.text) if terms.html else piece.text)
            else:
                separators.append("".join(fixed))
                fixed.clear()
                segments.append(self._segment(piece.text, ids[piece.text], terms, on_progress))
                inlays.append(piece)
        return Document(
            segments,
            [*separators, "".join(fixed)],
            self._tokenizer,
            inlays=inlays if terms.html else [],
            unknown_pieces=sum(segment.source_ids.count(self._manifest.unknown_id) for segment in segments),
            split=any(split.inside for split in splits),
        )

    def translate_offline(
        self, engine: Decodes, texts: Iterable[str], max_target_tokens: int | None = None, *, html: bool = False
    ) -> list[TextResult]:
        """Translate texts in this thread, all of them together.

        Args:
            engine: of the same bundle, not started.
            texts: of any length.
            max_target_tokens: of each segment, below its limit; None or 0: its limit.
            html: whether the texts are HTML.

        Raises:
            DragomanError: a segment could not be decoded.
        """
        documents = [self.prepare(text, Terms(max_target_tokens, html=html)) for text in texts]
        engine.decode([segment for document in documents for segment in document.segments])
        return [document.result() for document in documents]

    def _pieces(
        self, text: str, terms: Terms, ids: dict[str, list[int]], splits: list[segmentation.Split]
    ) -> Iterator[str | Inlay]:
        """Yield what stands as it is and what is to be translated; fill in the ids of the latter, and the splits."""
        for part in markup.parse(text) if terms.html else [markup.Block(text, text, (), plain=True)]:
            if isinstance(part, str):
                yield part
                continue
            split = segmentation.split(part.text, self._manifest.source_language, lambda piece: self._fits(piece, ids))
            splits.append(split)
            yield from part.pieces(split.separators, split.segments)

    def _segment(self, text: str, ids: list[int], terms: Terms, on_progress: OnProgress) -> Segment:
        return Segment(
            source_ids=[*ids, self._manifest.eos_id],
            max_target_tokens=self._limit(len(ids) + 1, terms.max_target_tokens),
            deadline_s=terms.deadline_s,
            wants_deltas=terms.wants_deltas,
            on_progress=on_progress,
            stops_at_repetition=self._limits.stop_repetition,
            wants_log_probability=terms.wants_log_probability,
            client=terms.client,
            priority=terms.priority,
            text_bytes=len(text.encode()),
        )

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
