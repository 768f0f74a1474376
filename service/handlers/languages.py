"""Detection of the languages of texts: as an answer, and to choose the models of a call."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Final

import structlog

from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2 as pb
from service.calls.limits import bad_texts, refuse_any
from service.calls.text_worker import TextWorker
from service.calls.texts_by_language import TextsByLanguage, group_by_language
from service.failures import told
from service.registry.catalog import Catalog
from service.settings import Settings
from service.telemetry.metrics import Metrics
from service.text.detection import CandidateLanguages, Guess
from service.wire import TAGGED

_log = structlog.get_logger()

_OTHER: Final = "other"  # label of a language that no model has


class Detection:
    """Detects languages, and counts them; lives on the event loop."""

    def __init__(self, settings: Settings, metrics: Metrics, worker: TextWorker) -> None:
        self._settings = settings
        self._counts = cache(metrics.detected_texts_total.labels)
        self._worker = worker

    async def load(self) -> None:
        """Load the language detector, so that no call waits for it; a call that needs it gets the error."""
        try:
            await self._worker.load_detector()
        except Exception as error:
            told(error)
        else:
            _log.info("language detection loaded")

    async def ranked(self, request: pb.DetectLanguageRequest, client: str, catalog: Catalog) -> list[list[Guess]]:
        """Estimate which languages the texts of a request may be in, each text alone."""
        candidates = CandidateLanguages.of(catalog.sources("", ""), catalog.languages)
        html = request.mime_type in TAGGED
        rankings = await self._worker.languages(client, request.contents, candidates, html=html)
        self._count([ranking[0] for ranking in rankings if ranking], catalog)
        return rankings

    async def group(
        self, request: pb.TranslateTextRequest, client: str, catalog: Catalog, sources: Sequence[str]
    ) -> TextsByLanguage:
        """Choose the source languages of the texts of a request.

        Args:
            sources: the languages from which the request can be translated, at least one.

        Raises:
            DragomanError: a text cannot be translated, and all or nothing is wanted.
        """
        contents = request.contents
        refused: dict[int, DragomanError] = dict(bad_texts(enumerate(contents), self._settings))
        if request.all_or_nothing:
            refuse_any(list(refused.values()))
        html = request.mime_type in TAGGED
        candidates = CandidateLanguages.of(sources, catalog.languages)
        detected = await self._worker.agreed_languages(client, contents, candidates, html=html)
        self._count([guess for guess in detected if guess], catalog)
        target, model, all_or_nothing = request.target_language_code, request.model, request.all_or_nothing
        return group_by_language(detected, sources, target, model, refused, all_or_nothing=all_or_nothing)

    def _count(self, guesses: Sequence[Guess], catalog: Catalog) -> None:
        served = catalog.languages
        labels = Counter(guess.language if guess.language in served else _OTHER for guess in guesses)
        for label, count in labels.items():
            self._counts(label).inc(count)
