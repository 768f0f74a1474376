"""LibreTranslate's API, for the many programs that let users set its address: https://docs.libretranslate.com.

Errors are `{"error": message}`, with status 403 for an invalid key, as clients of LibreTranslate expect.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dragoman.documents.formats import installed_suffixes
from dragoman.errors import DragomanError, InvalidRequestError, UnauthenticatedError
from dragoman.language import AUTO
from dragoman.v1 import translation_pb2 as pb
from plugins.http import errors
from plugins.http.calls import while_client_stays
from plugins.http.json_messages import named
from plugins.language_names import name_of
from plugins.protocols import form
from plugins.protocols.detected import languages_of
from plugins.protocols.parameter_calls import ParameterCalls, answered, in_own_names, quality_of
from service.handlers.translation import TranslationHandlers
from service.options import MAX_BEAM_SIZE

# LibreTranslate's parameter names, by the fields of messages.
OWN_NAMES: Final = {"contents": "q", "source_language_code": "source", "target_language_code": "target"}
_FORMATS: Final = {"": "text/plain", "text": "text/plain", "html": "text/html"}


class LibreTranslate:
    """The routes of the API."""

    def __init__(self, handlers: TranslationHandlers, calls: ParameterCalls) -> None:
        self._handlers = handlers
        self._calls = calls
        self._catalog = handlers.gate.catalog

    def routes(self) -> list[BaseRoute]:
        """Make the routes; the health route belongs to the server's own API."""
        return [
            Route("/translate", answered(self._translate, failed), methods=["POST"]),
            Route("/detect", answered(self._detect, failed), methods=["POST"]),
            Route("/languages", answered(self._languages, failed)),
            Route("/frontend/settings", answered(self._settings, failed)),
        ]

    async def _translate(self, request: Request) -> Any:
        ((asked, is_list), catalog), context = await self._calls.read(
            "TranslateText", request, lambda given: (_asked(given), self._catalog())
        )
        async with while_client_stays(request.receive):
            translated = (await self._handlers.translate(asked, context, or_return=True)).translations
        results: dict[str, list[Any]] = {"translatedText": [each.translated_text for each in translated]}
        if asked.source_language_code == AUTO:
            codes = languages_of(translated, catalog, asked.target_language_code)
            guesses = zip(codes, translated, strict=True)
            results["detectedLanguage"] = [_guess(code, each.detection_confidence) for code, each in guesses]
        if asked.options.quality_estimate:
            results["qualityEstimate"] = [quality_of(each) for each in translated]
        if asked.options.alternatives:
            results["alternatives"] = [_alternatives(each) for each in translated]
        return results if is_list else {name: values[0] for name, values in results.items()}

    async def _detect(self, request: Request) -> Any:
        ((texts, _), catalog), context = await self._calls.read(
            "DetectLanguage", request, lambda given: (form.texts_of(given, "q"), self._catalog())
        )
        async with while_client_stays(request.receive):
            answer = await self._handlers.detect(pb.DetectLanguageRequest(contents=texts), context)
        return [_guess(*each) for each in _together(texts, answer)] or [_guess(catalog.first_source(), 0.0)]

    async def _languages(self, request: Request) -> Any:
        pairs = self._catalog().pairs
        codes = sorted({*pairs, *(target for targets in pairs.values() for target in targets)})
        return [{"code": code, "name": name_of(code), "targets": pairs.get(code, [])} for code in codes]

    async def _settings(self, request: Request) -> Any:
        pairs = self._catalog().pairs
        asks_for_keys = bool(self._handlers.settings.api_keys)
        target = next((target for targets in pairs.values() for target in targets), "")
        return {
            "apiKeys": asks_for_keys,
            "keyRequired": asks_for_keys,
            "charLimit": -1,
            "frontendTimeout": 500,
            "suggestions": False,
            "filesTranslation": True,
            "supportedFilesFormat": installed_suffixes(),
            "language": {
                "source": {"code": AUTO, "name": "Auto Detect"},
                "target": {"code": target, "name": name_of(target)},
            },
        }


def failed(error: DragomanError) -> Response:
    """Make the answer to a failed call."""
    status = 403 if isinstance(error, UnauthenticatedError) else errors.status_of(error)
    return errors.json_response({"error": in_own_names(error, OWN_NAMES)}, status, errors.headers_of(error))


def _asked(given: dict[str, Any]) -> tuple[pb.TranslateTextRequest, bool]:
    """Convert parameters to a request, and tell whether the texts were a list.

    Raises:
        InvalidRequestError: a parameter is missing or invalid.
    """
    texts, is_list = form.texts_of(given, "q")
    source, target = (form.needed(given, name) for name in ("source", "target"))
    kind = form.text_of(given, "format")
    if kind not in _FORMATS:
        raise InvalidRequestError(named("format", f'must be "text" or "html", is {kind[:40]!r}'))
    alternatives = form.number_of(given, "alternatives", MAX_BEAM_SIZE - 1)
    options = pb.TranslateOptions(
        alternatives=alternatives + 1 if alternatives else 0, quality_estimate=form.flag_of(given, "quality_estimate")
    )
    asked = pb.TranslateTextRequest(
        contents=texts,
        source_language_code=AUTO if source.lower() == AUTO else source,
        target_language_code=target,
        mime_type=_FORMATS[kind],
        options=options,
    )
    return asked, is_list


def _alternatives(translated: pb.TranslatedText) -> list[str]:
    """List the other translations, without duplicates."""
    others = dict.fromkeys(each.translated_text for each in translated.alternatives)
    others.pop(translated.translated_text, None)
    return list(others)


def _together(texts: Sequence[str], answer: pb.DetectLanguageResponse) -> list[tuple[str, float]]:
    """Give the languages of all texts together, each with its mean confidence: a text counts by its length."""
    told = [(len(text), each.languages) for text, each in zip(texts, answer.detections, strict=True) if each.languages]
    sums: defaultdict[str, float] = defaultdict(float)
    for length, guesses in told:
        for guess in guesses:
            sums[guess.language_code] += length * guess.confidence
    whole = sum(length for length, _ in told)
    return sorted(((code, part / whole) for code, part in sums.items()), key=lambda each: -each[1])


def _guess(code: str, confidence: float) -> dict[str, Any]:
    return {"language": code, "confidence": round(100 * confidence, 1)}
