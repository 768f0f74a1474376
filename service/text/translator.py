"""The translator of one model: it makes documents, which turn a text into segments, and translations into a text."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache, partial
from typing import Final, NamedTuple

from dragoman.bundle import TARGET_FACTOR, TARGET_OFFSET, Manifest, target_limit
from dragoman.errors import FieldViolation
from dragoman.framing import Frame
from dragoman.tokenizer import Tokenizer
from service import plugins
from service.decode import Decode
from service.failures import invalid
from service.options import MAX_BEAM_SIZE, Decoding, RequestOptions
from service.segment import Segment
from service.settings import Settings
from service.terms import MAYBE_LITERAL, MAYBE_UNWRITTEN, TermPlan, TermPlanner, Terms
from service.text import markup, segmentation
from service.text.capitals import in_small_letters
from service.text.document import Document
from service.text.part import Part
from service.text.piece import Piece, Tags
from service.text.quotation import with_common_quotes
from service.text.text_quality import Estimator, TextQuality, without
from service.text.token_attention import SegmentText

OnProgress = Callable[[Segment], None]


class Limits(NamedTuple):
    """The limits of a segment that does not end by itself.

    Attributes:
        factor: target tokens that it may have for each source token ...
        offset: ... and target tokens in addition.
        stop_repetition: whether a segment that repeats itself is stopped.
    """

    factor: float = TARGET_FACTOR
    offset: int = TARGET_OFFSET
    stop_repetition: bool = True

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """Take the limits of a server."""
        return cls(settings.max_target_factor, settings.max_target_offset, settings.stop_repetition)


# Length of the longest piece of a default SentencePiece vocabulary; bounds the work of measuring a very long text.
CHARACTERS_PER_TOKEN: Final = 16
_FRAMES: Final = 1_024  # pairs of languages whose frames are kept
_DEFAULT_LIMITS: Final = Limits()
_DEFAULT_OPTIONS: Final = RequestOptions()


class Translator:
    """Makes documents for one model.

    Attributes:
        manifest, tokenizer: of the model.
        frame: gives the tokens around each segment, by the source and target languages.
    """

    def __init__(
        self,
        manifest: Manifest,
        tokenizer: Tokenizer,
        limits: Limits = _DEFAULT_LIMITS,
        *,
        slots: int = MAX_BEAM_SIZE,
    ) -> None:
        """Make the translator of a model; no segment may take more slots than `slots`."""
        self._slots = slots
        self.manifest = manifest
        self.tokenizer = tokenizer
        self._limits = limits
        self.frame = lru_cache(_FRAMES)(partial(Frame.of, manifest.languages, manifest))
        self._keeper = lru_cache(_FRAMES)(self._new_keeper)

    def open(
        self,
        text: str,
        options: RequestOptions = _DEFAULT_OPTIONS,
        on_progress: OnProgress = lambda segment: None,
        field: str = "text",
    ) -> Document:
        """Make a document of a text, without reading the text; HTML and XML are parsed at once.

        Reading it raises InvalidRequestError where a part that cannot be cut is longer than the model takes.

        Args:
            text: any text, without lone surrogates.
            on_progress: called on the event loop, see :class:`Segment`.
            field: name of the field that holds the text, for errors.
        """
        decoding = options.decoding._replace(stops_at_repetition=self._limits.stop_repetition)
        if options.quality_estimate and self._estimator.needs_log_probability:
            decoding = decoding._replace(wants_log_probability=True)
        options = options._replace(decoding=decoding)
        frame = self.frame(options.source_language, options.target_language)
        most_tokens = self.manifest.max_source_tokens - frame.tokens
        encode = lru_cache(1)(self.tokenizer.encode)  # a piece is first measured, and then encoded

        def fits(piece: str) -> bool:
            return len(piece) <= most_tokens * CHARACTERS_PER_TOKEN and len(encode(piece)) <= most_tokens

        language = options.source_language or self.manifest.languages.source("") or ""  # "" where it is not known
        asked = None if options.terms is None else self._planner(options.terms, options)
        split = partial(segmentation.split, language=language, fits=fits)
        if asked is not None:
            split = partial(split, fits=lambda piece: fits(asked.read(piece)), unbroken=asked.spans)
        if options.has_tags:
            blocks = markup.parse(text, options.xml)
            whole = "".join([block.text for block in blocks if not isinstance(block, str)])
            pieces = markup.protect(blocks, split)
        else:
            whole, pieces = text, split(text)
        return Document(
            self._parts(whole, pieces, encode, asked, frame, options, on_progress, field, language),
            self.tokenizer,
            text_bytes=len(whole.encode()),
            characters=len(text),
            unknown_id=self.manifest.unknown_id,
            wants_log_probability=options.mean_log_probability,
            alternatives=options.alternatives,
            alignments=options.alignments,
            quality=self._quality(language, options) if options.quality_estimate else None,
        )

    def prepare(
        self,
        text: str,
        options: RequestOptions = _DEFAULT_OPTIONS,
        on_progress: OnProgress = lambda segment: None,
        field: str = "text",
    ) -> Document:
        """Make a document of a text, and read all of it; the arguments, and the error, are those of :meth:`open`."""
        document = self.open(text, options, on_progress, field)
        document.read_all()
        return document

    def prefix_ids(self, target_prefix: str) -> tuple[int, ...]:
        """Give the ids of the prefix of a translation."""
        return tuple(self.tokenizer.encode_target(target_prefix)) if target_prefix else ()

    def is_writable(self, target_prefix: str) -> bool:
        """Tell whether the model has pieces for a prefix, so that it reads the same in a translation."""
        # A translation has no blanks at its ends.
        return self.tokenizer.decode(self.prefix_ids(target_prefix)) == target_prefix == target_prefix.strip()

    def _parts(
        self,
        whole: str,
        pieces: Iterable[Piece],
        encode: Callable[[str], list[int]],
        planner: TermPlanner | None,
        frame: Frame,
        options: RequestOptions,
        on_progress: OnProgress,
        field: str,
        language: str,
    ) -> Iterator[Part]:
        """Make segments of the pieces of a text, one after the other; the first segment has the prefix.

        Raises:
            InvalidRequestError: a piece that cannot be cut is longer than the model takes.
        """
        # All texts are searched for one set of characters, and for marks of addresses: not before a text is read, since
        # the texts of a call are opened all at once.
        keeps = MAYBE_UNWRITTEN.search(whole) or MAYBE_LITERAL.search(whole)
        if keeps:
            planner = self._keeping(options, language) or planner
        prefix_ids, number, start = options.prefix_ids, 0, 0
        for kept, text, inside, tags in pieces:
            start += len(kept)
            if (contents := () if tags is None else tags.contents) and planner is None:
                planner = self._keeping(options, language, contents=True)
            plan = None if planner is None else planner.plan(text, contents)
            is_asked = plan is not None and options.terms is not None  # else the plan only keeps words
            in_capitals = text.isupper() and not is_asked and not prefix_ids
            small = in_small_letters(text, language) if in_capitals else ""
            most_tokens = self.manifest.max_source_tokens - frame.tokens
            if plan is not None and (small or len(encode(plan.reading.text)) > most_tokens):
                plan = planner.plan(text) if is_asked and planner is not None else None
            read = small or (text if plan is None else plan.reading.text)
            if not read.isascii():
                quoted = with_common_quotes(readable := self.tokenizer.readable(read), language)
                read = quoted if len(encode(quoted)) <= most_tokens else readable
            if text and (prefix_ids or not (plan and plan.is_all)) and (ids := encode(read)):
                aligned = options.alignments or plan is not None or (tags is not None and len(tags.marks) > 0)
                changed = aligned or options.decoding.sampling is not None
                decoding = _of_segment(options.decoding, number, aligned=aligned) if changed else options.decoding
                if len(ids) > most_tokens:
                    most = f"a part that cannot be cut must be at most {most_tokens} tokens of the model"
                    raise invalid([FieldViolation(field, f"{most}, one is {len(ids)}")])
                decode = self._decode(text, ids, frame, decoding, options, prefix_ids, plan)
                segment = Segment(decode, options, len(ids), on_progress)
                source = SegmentText(read, start, len(frame.prefix)) if aligned else None
                judged = _judged(text, plan, tags) if options.quality_estimate else None
                yield Part(kept, segment, tags, inside, source, plan, judged, small != "")
                prefix_ids, number = (), number + 1
            else:  # the model would see nothing, as with a filler character, or has nothing to translate
                there = text if plan is None else plan.without_model
                yield Part(kept + (there if tags is None else tags.restore(there, None)), split=inside)
            start += len(text)

    @cached_property
    def _estimator(self) -> Estimator:
        estimator: Estimator = plugins.needed(plugins.QUALITY, "estimates no quality")(self.manifest.quality)
        return estimator

    def _quality(self, source_language: str, options: RequestOptions) -> TextQuality:
        target_language = options.target_language or self.manifest.languages.target("") or ""
        return TextQuality(self._estimator, source_language, target_language)

    def _keeping(self, options: RequestOptions, language: str, *, contents: bool = False) -> TermPlanner | None:
        """Plan the terms of a request and words that stay in any case; None if the model cannot copy names for them.

        Args:
            contents: whether the text has content of kept elements, which stays for any model.
        """
        keeper = self._keeper(language, options.target_language or self.manifest.languages.target("") or "")
        if keeper is None or not (self.manifest.stand_ins or contents) or options.decoding.sampling is not None:
            return None
        return self._planner(keeper(options.terms), options)

    def _new_keeper(self, language: str, target: str) -> Callable[[Terms | None], Terms] | None:
        make = plugins.first(plugins.KEPT)
        return make(self.tokenizer, language, target) if make else None

    def _planner(self, terms: Terms, options: RequestOptions) -> TermPlanner:
        prefix, forces = self.tokenizer.decode(options.prefix_ids), self._slots > 1 and options.terms is not None
        return terms.planner(self.manifest.stand_ins, self.tokenizer, prefix, forces=forces)

    def _decode(
        self,
        text: str,
        ids: list[int],
        frame: Frame,
        decoding: Decoding,
        options: RequestOptions,
        prefix_ids: tuple[int, ...],
        plan: TermPlan | None,
    ) -> Decode:
        source_ids = frame.around(ids)
        constraints = None if plan is None else plan.constraints
        given = len(prefix_ids)
        if constraints is not None:
            given += constraints.tokens
            decoding = decoding.with_terms(self._slots, options.length_penalty)
        longest = self.manifest.max_target_tokens
        limit = target_limit(len(source_ids), longest, self._limits.factor, self._limits.offset)
        limit = min(limit + given, longest)  # given tokens do not use up the limit
        return Decode(
            source_ids=source_ids,
            max_target_tokens=min(options.max_target_tokens or limit, limit),
            decoding=decoding,
            text_bytes=len(text.encode()),
            start_ids=frame.start_ids,
            prefix_ids=prefix_ids,
            constraints=constraints,
        )


def _judged(text: str, plan: TermPlan | None, tags: Tags | None) -> str:
    """Give the part of a segment's text by which its quality is estimated: without kept and replaced parts."""
    spans = [] if tags is None else [*tags.contents]
    if plan is not None:
        spans += plan.replaced
    return without(text, sorted(spans))


def _of_segment(decoding: Decoding, number: int, *, aligned: bool) -> Decoding:
    """Give the options of a segment of a text: where tokens are sampled, each segment has its own random numbers."""
    if decoding.sampling is not None:
        decoding = decoding._replace(sampling=decoding.sampling._replace(segment=number))
    return decoding._replace(wants_attention=True) if aligned else decoding
