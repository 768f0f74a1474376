"""The method: pairs of texts and translations, each scored by one model."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final

from dragoman.errors import DragomanError, FieldViolation, UnknownLanguagePairError, to_text_error
from dragoman.v1 import translation_pb2 as pb
from plugins.scoring.pair import Pair, open_pair
from service.calls.large_call import LargeCall
from service.calls.limits import raise_if_any
from service.calls.text_worker import SMALL, Text, isolated
from service.handlers import validation
from service.handlers.answer import whole
from service.handlers.context import CallContext
from service.handlers.methods import Method
from service.handlers.options import priority_of
from service.handlers.route import Route
from service.handlers.translation import TranslationHandlers
from service.options import SCORING, RequestOptions
from service.registry.catalog import Catalog, Choice
from service.settings import Settings
from service.text.result import TextResult

# Bytes of the answer per byte of target text: a token has about 4 bytes, and its score 20 besides its piece.
_SCORE_BYTES: Final = 8


async def score(
    handlers: TranslationHandlers, request: pb.ScoreTextRequest, context: CallContext
) -> pb.ScoreTextResponse:
    """Score all pairs and answer once."""
    planner, settings = handlers.planner, handlers.settings

    def choose(catalog: Catalog) -> Route:
        return scoring_route(request, catalog, settings)

    with handlers.opened(SCORE.name, context, request.request_id) as record:
        with ExitStack() as held:
            record.texts = len(request.pairs)
            _, parts = await planner.one_route(
                choose, request, context, record, held, all_or_nothing=request.all_or_nothing
            )
            [(leg, _)] = parts
            pairs = [
                Pair(pair.source_text, pair.target_text, f"pairs[{number}].")
                for number, pair in enumerate(request.pairs)
            ]
            leg.pipeline.intake.admission.precheck(leg.options, sum([pair.text_bytes for pair in pairs]))
            call = PairsCall(parts, planner.worker, planner.metrics, record)
            async with handlers.gate.limited(context), call:
                call.add_pairs(pairs)
                results = await call.done()
        scores = [scored(result, record.model) for result in results.values()]
        return whole(pb.ScoreTextResponse(scores=scores, request_id=record.request_id), settings.max_answer_bytes)


SCORE: Final = Method("ScoreText", score, pb.ScoreTextRequest, pb.ScoreTextResponse)


class PairsCall(LargeCall):
    """A call with texts and their given translations."""

    def add_pairs(self, pairs: Sequence[Pair]) -> None:
        """Take all texts of the call, and queue their segments, or the first of them; raises as :meth:`Call.add`."""
        [(leg, _)] = self._parts
        self.count = len(pairs)
        texts: dict[int, Text] = {}
        small = sum(pair.characters for pair in pairs) <= SMALL
        for number, pair in enumerate(pairs):
            document = open_pair(leg.pipeline.translator, pair, leg.options, partial(self._progress, number))
            error = isolated(document.read_all) if small else None
            texts[number] = error or document
        self._let_in(leg, texts)


def scoring_route(request: pb.ScoreTextRequest, catalog: Catalog, settings: Settings) -> Route:
    """Check a request, and compute its route. Whether each pair can be scored is checked later.

    Raises:
        UnknownModelError: no model has the given name.
        UnknownLanguagePairError: no single model translates between the given languages.
    """
    source, undetected = validation.undetected(request, catalog)
    chosen, bad = validation.choose(request, source, catalog, [*_bad_pairs(request.pairs, settings), *undetected])
    raise_if_any(bad)
    target = request.target_language_code
    if chosen.pivot is not None:
        raise UnknownLanguagePairError(
            f"no model translates from {source!r} to {target!r} by itself, and a translation over a third language has "
            "no score",
            metadata={"source_language_code": source, "target_language_code": target, "model": ""},
        )
    return Route(chosen, options_of(request, chosen))


def options_of(request: pb.ScoreTextRequest, chosen: Choice) -> RequestOptions:
    """Give the options of a valid request."""
    return RequestOptions(
        decoding=SCORING,
        priority=priority_of(request),
        source_language=chosen.source,
        target_language=chosen.target,
        mean_log_probability=True,
    )


def scored(outcome: TextResult | DragomanError, model: str) -> pb.TextScore:
    """Write the score of one translation by a model, or the error in its place."""
    if isinstance(outcome, DragomanError):
        return pb.TextScore(model=model, text_error=to_text_error(outcome))
    return pb.TextScore(
        model=model,
        log_probability=outcome.log_probability,
        mean_log_probability=outcome.mean_log_probability,
        tokens=[
            pb.TokenScore(piece=piece, log_probability=log_probability)
            for piece, log_probability in outcome.token_scores
        ],
        source_tokens=outcome.source_tokens,
        target_tokens=outcome.target_tokens,
    )


def _bad_pairs(pairs: Sequence[pb.TextPair], settings: Settings) -> Iterator[FieldViolation]:
    """Refuse pairs whose scores might not fit one message."""
    if not 1 <= len(pairs) <= settings.max_contents:
        yield FieldViolation("pairs", f"must hold 1 to {settings.max_contents} pairs, holds {len(pairs)}")
        return  # any number of pairs would hold the event loop up
    limit_bytes = settings.max_answer_bytes // _SCORE_BYTES
    if (size := sum(len(pair.target_text.encode()) for pair in pairs)) > limit_bytes:
        yield FieldViolation(
            "pairs",
            f"must have target texts of at most {limit_bytes} bytes together, has {size}: the answer is one message of "
            f"at most {settings.max_answer_bytes} bytes",
        )
