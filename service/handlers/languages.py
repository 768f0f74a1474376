"""The languages of texts, detected: for their own sake, and to choose the models of a call."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from dragoman.errors import DragomanError, UnknownLanguagePairError
from dragoman.v1 import translation_pb2 as pb
from service.calls.limits import bad_texts, refuse_any
from service.calls.text_worker import TextWorker
from service.handlers.validation import HTML
from service.registry.catalog import Catalog
from service.settings import Settings
from service.telemetry.metrics import Metrics
from service.text.detection import COMMON, Guess, Tongues, agree, most_frequent

_OTHER: Final = "other"  # of a label: a language that no model has
_NAMED: Final = 8  # languages that a message names


class Spread(NamedTuple):
    """The texts of a call by their languages.

    Attributes:
        detected: the language of each text; None for one that says nothing.
        texts: the numbers of those that can be translated, by the language from which they are to be.
        refused: the others, and why.
    """

    detected: Sequence[Guess | None]
    texts: Mapping[str, Sequence[int]]
    refused: Mapping[int, DragomanError]


class Languages:
    """Detects languages, and counts them; lives on the event loop.

    Args:
        settings: the limits.
        metrics: of the server.
        worker: of the server.
    """

    def __init__(self, settings: Settings, metrics: Metrics, worker: TextWorker) -> None:
        self._settings = settings
        self._counts = cache(metrics.detected_texts_total.labels)
        self._worker = worker

    async def ranked(self, request: pb.DetectLanguageRequest, client: str, catalog: Catalog) -> list[list[Guess]]:
        """Say in which languages the texts of a request may be, each by itself."""
        tongues = _tongues(catalog.sources("", ""), catalog)
        html = request.mime_type == HTML
        rankings = await self._worker.languages(client, request.contents, tongues, html=html)
        self._count([ranking[0] for ranking in rankings if ranking], catalog)
        return rankings

    async def spread(
        self, request: pb.TranslateTextRequest, client: str, catalog: Catalog, sources: Sequence[str]
    ) -> Spread:
        """Say from which languages the texts of a request are to be translated.

        Args:
            request: valid so far.
            client: whose request it is.
            catalog: the models that are served.
            sources: the languages from which it can be translated, at least one.

        Raises:
            DragomanError: a text cannot be translated, and all or nothing is wanted.
        """
        contents = request.contents
        refused: dict[int, DragomanError] = dict(bad_texts(contents, self._settings))
        if request.all_or_nothing:
            refuse_any(list(refused.values()))
        html = request.mime_type == HTML
        rankings = await self._worker.languages(client, contents, _tongues(sources, catalog), html=html)
        detected = agree(rankings, list(map(len, contents)))
        self._count([guess for guess in detected if guess], catalog)
        default = most_frequent((guess for guess in detected if guess and guess.language in sources), sources[0])
        texts: dict[str, list[int]] = {}
        unserved: dict[int, UnknownLanguagePairError] = {}
        for number, guess in enumerate(detected):
            language = guess.language if guess else default
            if number in refused:
                continue
            if guess and language not in sources:
                unserved[number] = _unserved(number, guess, request, sources)
            else:
                texts.setdefault(language, []).append(number)
        if unserved and request.all_or_nothing:
            raise _all(list(unserved.values()))
        return Spread(detected, texts, {**refused, **unserved})

    def _count(self, guesses: Sequence[Guess], catalog: Catalog) -> None:
        served = catalog.languages()
        for guess in guesses:
            self._counts(guess.language if guess.language in served else _OTHER).inc()


def _tongues(sources: Sequence[str], catalog: Catalog) -> Tongues:
    served = catalog.languages()
    return Tongues(tuple(sources), (*sorted(served - set(sources)), *COMMON))


def _unserved(
    number: int, guess: Guess, request: pb.TranslateTextRequest, sources: Sequence[str]
) -> UnknownLanguagePairError:
    """Make the error of a text in a language that no model translates as the request asks."""
    several = ", ".join(sources[:_NAMED]) + (", ..." if len(sources) > _NAMED else "")
    target, model = request.target_language_code, request.model
    description = (
        f"is in {guess.language!r}, as detected (confidence {guess.confidence:.2f}); "
        f"{f'model {model}' if model else 'the server'} translates into {target or 'any language'!r} from {several}"
    )
    return UnknownLanguagePairError(
        f"contents[{number}]: {description}",
        metadata={"source_language_code": guess.language, "target_language_code": target, "model": model},
        violations=[(f"contents[{number}]", description)],
    )


def _all(errors: Sequence[UnknownLanguagePairError]) -> UnknownLanguagePairError:
    """Make the error of a call of those of its texts, at least one."""
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    violations = [violation for error in errors for violation in error.violations]
    return UnknownLanguagePairError(f"{first.message}{more}", metadata=first.metadata, violations=violations)
