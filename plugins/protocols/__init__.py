"""The HTTP protocols of other products, converted to messages and back: LibreTranslate, DeepL and Connect."""

from pathlib import Path

from starlette.routing import BaseRoute

from plugins.documents.folder import SharedFolder
from plugins.documents.jobs import DocumentJobs
from plugins.http.parts import HttpParts
from plugins.protocols import connect
from plugins.protocols.deepl import DeepL
from plugins.protocols.deepl_documents import DeepLDocuments
from plugins.protocols.libretranslate import LibreTranslate
from plugins.protocols.libretranslate_files import LibreTranslateFiles
from plugins.protocols.parameter_calls import ParameterCalls
from service.wire import CallProtocol


def routes(parts: HttpParts) -> list[BaseRoute]:
    """Make the routes."""
    handlers, calls, methods = parts
    of_libretranslate = ParameterCalls(calls, CallProtocol.LIBRETRANSLATE, "api_key")
    of_deepl = ParameterCalls(calls, CallProtocol.DEEPL, "auth_key")
    documents = handlers.settings.documents
    jobs = DocumentJobs(handlers, SharedFolder(Path(documents)) if documents else None)
    return [
        *connect.routes(methods),
        *LibreTranslate(handlers, of_libretranslate).routes(),
        *LibreTranslateFiles(jobs, of_libretranslate).routes(),
        *DeepLDocuments(handlers, jobs, of_deepl).routes(),
        *DeepL(handlers, of_deepl).routes(),  # last: one route takes all other paths of /v2
    ]
