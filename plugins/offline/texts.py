"""Texts that are translated or scored in this thread, all of them together."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from dragoman.errors import InvalidRequestError
from plugins.scoring.pair import Pair, open_pair
from service.decode import Decode
from service.options import RequestOptions
from service.text.document import Document
from service.text.result import TextResult
from service.text.translator import Translator


class Decodes(Protocol):
    """An offline engine of the same bundle."""

    def decode(self, decodes: list[Decode]) -> None:
        """Decode until all segments are finished."""


def translate_offline(
    translator: Translator, engine: Decodes, texts: Iterable[str], options: RequestOptions | None = None
) -> list[TextResult]:
    """Translate texts.

    Raises:
        DragomanError: a segment could not be decoded.
    """
    return _decoded(engine, [translator.prepare(text, options or RequestOptions()) for text in texts])


def score_offline(
    translator: Translator, engine: Decodes, pairs: Iterable[Pair], options: RequestOptions
) -> list[TextResult | InvalidRequestError]:
    """Score pairs.

    Returns:
        The result of each, or why it cannot be scored.

    Raises:
        DragomanError: a segment could not be decoded.
    """
    outcomes: list[Document | InvalidRequestError] = []
    for pair in pairs:
        document = open_pair(translator, pair, options)
        try:
            document.read_all()
        except InvalidRequestError as error:
            outcomes.append(error)
        else:
            outcomes.append(document)
    results = iter(_decoded(engine, [outcome for outcome in outcomes if isinstance(outcome, Document)]))
    return [next(results) if isinstance(outcome, Document) else outcome for outcome in outcomes]


def _decoded(engine: Decodes, documents: Sequence[Document]) -> list[TextResult]:
    segments = [segment for document in documents for segment in document.segments]
    engine.decode([segment.decode for segment in segments])
    for segment in segments:
        segment.finished = True
    return [document.result() for document in documents]
