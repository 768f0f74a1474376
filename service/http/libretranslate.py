"""LibreTranslate's API, for the many programs that have a field for its address: https://docs.libretranslate.com.

Errors are `{"error": message}`, with 403 for a key, as its clients expect.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dragoman.errors import DragomanError, InvalidRequestError, UnauthenticatedError
from dragoman.v1 import translation_pb2 as pb
from service.handlers.translation import TranslationHandlers
from service.handlers.untranslated import or_itself
from service.http import errors, form
from service.http.calls import Calls, Head, while_client_stays
from service.http.json_messages import named
from service.language_names import name_of
from service.options import MAX_BEAM_SIZE
from service.registry.catalog import Catalog
from service.wire import Protocol

_AUTO: Final = "auto"
_FORMATS: Final = {"": "text/plain", "text": "text/plain", "html": "text/html"}


class LibreTranslate:
    """The routes of the API.

    Args:
        handlers: of the methods.
        calls: begins them.
        catalog: gives the models that are served; raises a DragomanError where there are none.
        asks_for_keys: whether callers need a key.
    """

    def __init__(
        self, handlers: TranslationHandlers, calls: Calls, catalog: Callable[[], Catalog], *, asks_for_keys: bool
    ) -> None:
        self._handlers = handlers
        self._calls = calls
        self._catalog = catalog
        self._asks_for_keys = asks_for_keys

    def routes(self) -> list[BaseRoute]:
        """Make the routes; health is that of the server's own API."""
        return [
            Route("/translate", _answered(self._translate), methods=["POST"]),
            Route("/detect", _answered(self._detect), methods=["POST"]),
            Route("/languages", _answered(self._languages)),
            Route("/frontend/settings", _answered(self._settings)),
        ]

    async def _translate(self, request: Request) -> Any:
        given, head = await self._begin("TranslateText", request)
        try:
            context = self._calls.context(head)
            asked, is_list = _asked(given)
        except DragomanError as error:
            self._calls.refuse(head, error)
            raise
        if asked.source_language_code.lower() == asked.target_language_code.lower():
            translated = [pb.TranslatedText(translated_text=text) for text in asked.contents]
        else:
            async with while_client_stays(request.receive):
                answer = await self._handlers.translate(asked, context)
            target = asked.target_language_code
            pairs = zip(answer.translations, asked.contents, strict=True)
            translated = [or_itself(each, text, target) for each, text in pairs]
        results: dict[str, list[Any]] = {"translatedText": [each.translated_text for each in translated]}
        if asked.source_language_code == _AUTO:
            results["detectedLanguage"] = self._detected(translated)
        if asked.options.alternatives:
            results["alternatives"] = [_alternatives(each) for each in translated]
        return results if is_list else {name: values[0] for name, values in results.items()}

    async def _detect(self, request: Request) -> Any:
        given, head = await self._begin("DetectLanguage", request)
        try:
            context = self._calls.context(head)
            texts, _ = _texts(given)
        except DragomanError as error:
            self._calls.refuse(head, error)
            raise
        async with while_client_stays(request.receive):
            answer = await self._handlers.detect(pb.DetectLanguageRequest(contents=texts[:1]), context)
        found = [_guess(each.language_code, each.confidence) for each in answer.detections[0].languages]
        return found or [_guess(self._first_source(), 0.0)]

    async def _languages(self, request: Request) -> Any:
        pairs = self._catalog().pairs()
        codes = sorted({*pairs, *(target for targets in pairs.values() for target in targets)})
        return [{"code": code, "name": name_of(code), "targets": pairs.get(code, [])} for code in codes]

    async def _settings(self, request: Request) -> Any:
        pairs = self._catalog().pairs()
        target = next((target for targets in pairs.values() for target in targets), "")
        return {
            "apiKeys": self._asks_for_keys,
            "keyRequired": self._asks_for_keys,
            "charLimit": -1,
            "frontendTimeout": 500,
            "suggestions": False,
            "filesTranslation": False,
            "supportedFilesFormat": [],
            "language": {
                "source": {"code": _AUTO, "name": "Auto Detect"},
                "target": {"code": target, "name": name_of(target)},
            },
        }

    async def _begin(self, method: str, request: Request) -> tuple[dict[str, Any], Head]:
        """Read the parameters, among which the key may be, and tell who calls.

        Raises:
            DragomanError: that cannot be told, or there are no parameters; the call is over.
            ClientLeftError: the client has gone.
        """
        given: dict[str, Any] = {}
        failure = None
        try:
            given = await form.parameters(request, await self._calls.body(request))
            key = form.text_of(given, "api_key")
        except DragomanError as error:
            key, failure = "", error
        head = self._calls.begin(method, Protocol.LIBRETRANSLATE, request, key)
        if failure is not None:
            self._calls.refuse(head, failure)
        return given, head

    def _detected(self, translated: Sequence[pb.TranslatedText]) -> list[dict[str, Any]]:
        """Say in which languages texts are; of one that says nothing, as the first of the others."""
        codes = (each.detected_language_code for each in translated if each.detected_language_code)
        default = next(codes, "") or self._first_source()
        return [_guess(each.detected_language_code or default, each.detection_confidence) for each in translated]

    def _first_source(self) -> str:
        return next(iter(self._catalog().pairs()))


def _answered(serve: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """Make an endpoint that answers in JSON, errors too."""

    async def endpoint(request: Request) -> Response:
        try:
            return errors.json_response(await serve(request))
        except DragomanError as error:
            status = 403 if isinstance(error, UnauthenticatedError) else errors.status_of(error)
            return errors.json_response({"error": error.message}, status, errors.headers_of(error))

    return endpoint


def _asked(given: dict[str, Any]) -> tuple[pb.TranslateTextRequest, bool]:
    """Make a request of parameters; and say whether its texts were a list.

    Raises:
        InvalidRequestError: one is missing, or wrong.
    """
    texts, is_list = _texts(given)
    source, target = (_needed(form.text_of(given, name), name) for name in ("source", "target"))
    kind = form.text_of(given, "format")
    if kind not in _FORMATS:
        raise InvalidRequestError(named("format", f'must be "text" or "html", is {kind[:40]!r}'))
    alternatives = form.number_of(given, "alternatives", MAX_BEAM_SIZE - 1)
    options = pb.TranslateOptions(alternatives=alternatives + 1) if alternatives else None
    asked = pb.TranslateTextRequest(
        contents=texts,
        source_language_code=_AUTO if source.lower() == _AUTO else source,
        target_language_code=target,
        mime_type=_FORMATS[kind],
        options=options,
    )
    return asked, is_list


def _texts(given: dict[str, Any]) -> tuple[list[str], bool]:
    texts = given.get("q")
    if not texts:
        raise InvalidRequestError(named("q", "the parameter is missing"))
    is_list = isinstance(texts, list)
    texts = texts if is_list else [texts]
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidRequestError(named(f"q[{index}]" if is_list else "q", "must be a string"))
        if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidRequestError(named(f"q[{index}]" if is_list else "q", "half a surrogate pair is no character"))
    return texts, is_list


def _needed(value: str, name: str) -> str:
    if not value:
        raise InvalidRequestError(named(name, "the parameter is missing"))
    return value


def _alternatives(translated: pb.TranslatedText) -> list[str]:
    """List other translations, each once."""
    others = dict.fromkeys(each.translated_text for each in translated.alternatives)
    others.pop(translated.translated_text, None)
    return list(others)


def _guess(code: str, confidence: float) -> dict[str, Any]:
    return {"language": code, "confidence": round(100 * confidence, 1)}
