"""Translates or scores texts in this thread, all texts together."""

import sys
from collections.abc import Iterable
from contextlib import redirect_stdout, suppress
from typing import Protocol

from dragoman.errors import DragomanError, InvalidRequestError, TextFailedError
from plugins.scoring.pair import Pair, open_pair
from service.calls.text_worker import Result
from service.decode import Decode
from service.options import RequestOptions
from service.text.document import Document
from service.text.result import TextResult
from service.text.translator import Translator


class Decodes(Protocol):
    """An offline engine for the bundle of the translator."""

    def decode(self, decodes: list[Decode]) -> None:
        """Decode until all segments are finished; then raises TextFailedError where one has failed."""


def translate_offline(
    translator: Translator, engine: Decodes, texts: Iterable[str], options: RequestOptions | None = None
) -> list[TextResult]:
    """Translate texts.

    Raises:
        DragomanError: one could not be translated.
    """
    return [_result(outcome) for outcome in translate_each(translator, engine, texts, options or RequestOptions())]


def translate_each(
    translator: Translator, engine: Decodes, texts: Iterable[str], options: RequestOptions
) -> list[Result]:
    """Translate texts.

    Returns:
        The result of each text, or the error if it cannot be translated.
    """
    return _decoded(engine, (translator.open(text, options) for text in texts))


def score_offline(
    translator: Translator, engine: Decodes, pairs: Iterable[Pair], options: RequestOptions
) -> list[Result]:
    """Score pairs.

    Returns:
        The result of each pair, or the error if it cannot be scored.
    """
    return _decoded(engine, (open_pair(translator, pair, options) for pair in pairs))


def _decoded(engine: Decodes, documents: Iterable[Document]) -> list[Result]:
    read = [_read(document) for document in documents]
    segments = [segment for each in read if isinstance(each, Document) for segment in each.segments]
    with redirect_stdout(sys.stderr):  # the log; standard output is for translations
        with suppress(TextFailedError):  # the segment has the error, too
            engine.decode([segment.decode for segment in segments])
        for segment in segments:
            segment.finished = True
        return [each.outcome() if isinstance(each, Document) else each for each in read]


def _read(document: Document) -> Document | InvalidRequestError:
    """Read a document; give it, or the error if it cannot be read."""
    try:
        document.read_all()
    except InvalidRequestError as error:
        return error
    return document


def _result(outcome: Result) -> TextResult:
    if isinstance(outcome, DragomanError):
        raise outcome
    return outcome
