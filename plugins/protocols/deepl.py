"""DeepL's API, version 2, for programs that let users set its address: https://developers.deepl.com/api-reference.

Errors are `{"message": ...}`: 403 for a key, 404 for a glossary, and 413 for a body that is too large.
"""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dragoman.errors import DragomanError, InvalidRequestError, UnauthenticatedError, UnknownGlossaryError
from dragoman.language import AUTO
from dragoman.v1 import translation_pb2 as pb
from plugins.http import errors
from plugins.http.calls import while_client_stays
from plugins.http.json_messages import named
from plugins.language_names import name_of
from plugins.protocols import form
from plugins.protocols.deepl_request import asked_of
from plugins.protocols.detected import languages_of
from plugins.protocols.parameter_calls import ParameterCalls, answered, in_own_names, quality_of
from plugins.terms.glossaries import unknown
from plugins.terms.method import list_glossaries
from service.handlers.translation import TranslationHandlers

# DeepL's parameter names, by the fields of messages.
OWN_NAMES: Final = {
    "contents": "text",
    "source_language_code": "source_lang",
    "target_language_code": "target_lang",
    "options.glossary.names": "glossary_id",
    "options.xml_tags.splitting": "splitting_tags",
    "options.xml_tags.kept": "ignore_tags",
}
_SCHEME: Final = "deepl-auth-key "
# The header for a key, in errors: for any protocol, and DeepL's.
_HEADERS: Final = ("authorization: Bearer KEY", "Authorization: DeepL-Auth-Key KEY")
# DeepL's value for no limit.
_UNLIMITED: Final = 1_000_000_000_000
# Its clients accept only these codes as targets.
_VARIANTS: Final = {"en": ("en-GB", "en-US"), "pt": ("pt-BR", "pt-PT"), "zh": ("zh", "zh-Hans")}
_UNKNOWN_TIME: Final = "1970-01-01T00:00:00.000Z"  # clients require a time


class DeepL:
    """The routes of the API."""

    def __init__(self, handlers: TranslationHandlers, calls: ParameterCalls) -> None:
        self._handlers = handlers
        self._calls = calls
        self._catalog = handlers.gate.catalog

    def routes(self) -> list[BaseRoute]:
        """Make the routes."""
        return [
            Route("/v2/translate", answered(self._translate, failed), methods=["POST"]),
            Route("/v2/languages", answered(self._languages, failed), methods=["GET", "POST"]),
            Route("/v2/usage", answered(self._usage, failed), methods=["GET", "POST"]),
            Route("/v2/glossary-language-pairs", answered(self._glossary_pairs, failed)),
            Route("/v2/glossaries", answered(self._glossaries, failed)),
            Route("/v2/glossaries/{glossary_id}", answered(self._glossary, failed)),
            Route("/v2/{rest:path}", _refused, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        ]

    async def _translate(self, request: Request) -> Any:
        ((asked, shows_billed), catalog), context = await self._calls.read(
            "TranslateText", request, lambda given: (asked_of(given), self._catalog()), key_of(request)
        )
        async with while_client_stays(request.receive):
            translated = (await self._handlers.translate(asked, context, or_return=True)).translations
        texts, source = asked.contents, asked.source_language_code
        is_detected = source.lower() == AUTO
        sources = (
            languages_of(translated, catalog, asked.target_language_code) if is_detected else [source] * len(texts)
        )
        return {
            "translations": [
                {"detected_source_language": _base(source), "text": each.translated_text}
                | ({"billed_characters": len(text)} if shows_billed else {})
                | ({"quality_estimate": quality_of(each)} if asked.options.quality_estimate else {})
                for each, text, source in zip(translated, texts, sources, strict=True)
            ]
        }

    async def _languages(self, request: Request) -> Any:
        is_target, context = await self._calls.read("ListModels", request, _is_target, key_of(request))
        await self._handlers.list_models(pb.ListModelsRequest(), context)
        pairs = self._catalog().pairs
        if not is_target:
            return [_language(code) for code in sorted({_base(source) for source in pairs})]
        targets = {target for targets in pairs.values() for target in targets}
        codes = {variant for target in targets for variant in _VARIANTS.get(target, (target,))}
        return [_language(code) | {"supports_formality": False} for code in sorted(codes)]

    async def _usage(self, request: Request) -> Any:
        await self._models(request)
        return {"character_count": 0, "character_limit": _UNLIMITED}

    async def _glossary_pairs(self, request: Request) -> Any:
        pairs = {
            (_base(source).lower(), _base(target).lower())
            for model in await self._models(request)
            for source in model.source_language_codes
            for target in model.target_language_codes
        }
        supported = [{"source_lang": source, "target_lang": target} for source, target in sorted(pairs)]
        return {"supported_languages": [pair for pair in supported if pair["source_lang"] != pair["target_lang"]]}

    async def _glossaries(self, request: Request) -> Any:
        return {"glossaries": await self._stored(request)}

    async def _glossary(self, request: Request) -> Any:
        name = request.path_params["glossary_id"]
        stored = {glossary["glossary_id"]: glossary for glossary in await self._stored(request)}
        if name not in stored:
            raise unknown(name, list(stored))
        return stored[name]

    async def _models(self, request: Request) -> list[pb.Model]:
        asked, context = await self._calls.read(
            "ListModels", request, lambda _: pb.ListModelsRequest(), key_of(request)
        )
        return list((await self._handlers.list_models(asked, context)).models)

    async def _stored(self, request: Request) -> list[dict[str, Any]]:
        """List the stored glossaries that name their languages, as DeepL's glossaries do."""
        asked, context = await self._calls.read(
            "ListGlossaries", request, lambda _: pb.ListGlossariesRequest(), key_of(request)
        )
        answer = await list_glossaries(self._handlers, asked, context)
        return [
            {
                "glossary_id": each.name,
                "name": each.name,
                "ready": True,
                "source_lang": each.source_language_code.lower(),
                "target_lang": each.target_language_code.lower(),
                "creation_time": _UNKNOWN_TIME,
                "entry_count": each.entries,
            }
            for each in answer.glossaries
            if each.source_language_code and each.target_language_code
        ]


async def _refused(request: Request) -> Response:
    """Answer that a part of DeepL's API is not supported."""
    if request.path_params["rest"].startswith("glossaries") and request.method != "GET":
        message = "glossaries are files on the server (--glossaries): they cannot be changed over this API"
        return errors.json_response({"message": message}, 400)
    message = f"this server has no {request.method} {request.url.path[:200]} of DeepL's API"
    return errors.json_response({"message": message}, 404)


def failed(error: DragomanError) -> Response:
    """Make the answer to a failed call."""
    status, message = errors.status_of(error), in_own_names(error, OWN_NAMES)
    if isinstance(error, UnauthenticatedError):
        status, message = 403, message.replace(*_HEADERS)
    elif isinstance(error, UnknownGlossaryError):
        status = 404
    elif "max_request_bytes" in error.metadata:
        status = 413
    return errors.json_response({"message": message}, status, errors.headers_of(error))


def key_of(request: Request) -> str:
    """Give the API key of the header; "" if there is none."""
    value = request.headers.get("authorization", "")
    return value[len(_SCHEME) :].strip() if value[: len(_SCHEME)].lower() == _SCHEME else ""


def _is_target(given: dict[str, Any]) -> bool:
    kind = form.text_of(given, "type")
    if kind not in ("", "source", "target"):
        raise InvalidRequestError(named("type", f"must be source or target, is {kind[:40]!r}"))
    return kind == "target"


def _base(code: str) -> str:
    """Remove the region from a language code, as in DeepL's source languages."""
    return code.partition("-")[0].upper()


def _language(code: str) -> dict[str, Any]:
    return {"language": code.upper(), "name": name_of(code)}
