"""DeepL's API for documents: one call uploads a document, others ask for its state, and one downloads the translation.

https://developers.deepl.com/api-reference/document
"""

import asyncio
import secrets
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2 as pb
from plugins.documents.documents import METHOD
from plugins.documents.jobs import DocumentJob, DocumentJobs
from plugins.http import errors
from plugins.protocols import form
from plugins.protocols.deepl import OWN_NAMES, failed, key_of
from plugins.protocols.deepl_request import document_of
from plugins.protocols.download import download
from plugins.protocols.parameter_calls import ParameterCalls, answered, in_own_names
from service.handlers.translation import TranslationHandlers
from service.wire import CallProtocol

# For a document: no client waits on an open connection.
_TIMEOUT_S: Final = 3600.0
# A request for the state is held this long: the vendor's client asks at once, and again only after 5 s.
HELD_S: Final = 1.0


class DeepLDocuments:
    """The routes for documents."""

    def __init__(self, handlers: TranslationHandlers, jobs: DocumentJobs, calls: ParameterCalls) -> None:
        self._handlers = handlers
        self._jobs = jobs
        self._calls = calls

    def routes(self) -> list[BaseRoute]:
        """Make the routes."""
        return [
            Route("/v2/document", answered(self._send, failed), methods=["POST"]),
            Route("/v2/document/{document_id}", answered(self._status, failed), methods=["GET", "POST"]),
            Route("/v2/document/{document_id}/result", self._fetch, methods=["GET", "POST"]),
        ]

    async def _send(self, request: Request) -> Any:
        asked, context = await self._calls.read(METHOD, request, document_of, key_of(request), timeout_s=_TIMEOUT_S)
        job = await self._jobs.begin(asked, context)
        return {"document_id": job.id, "document_key": job.key}

    async def _status(self, request: Request) -> Any:
        job = await self._job(request)
        if job is None:
            return _not_found(request)
        if not job.task.done():
            await asyncio.wait([job.task], timeout=HELD_S)
            job = await self._jobs.find(CallProtocol.DEEPL, job.id) or job  # read again: another server may have it
        status: dict[str, Any] = {"document_id": job.id, "status": "translating"}
        if not job.task.done():
            return status
        try:
            job.task.result()
        except DragomanError as error:
            return status | {"status": "error", "error_message": in_own_names(error, OWN_NAMES)}
        return status | {"status": "done", "billed_characters": 0}

    async def _fetch(self, request: Request) -> Response:
        try:
            job = await self._job(request)
            if job is None:
                return _not_found(request)
            if not job.task.done():
                return errors.json_response({"message": "the document is not yet translated"}, 503)
            content = job.task.result()
        except DragomanError as error:
            return failed(error)
        if request.method != "HEAD":
            await self._jobs.forget(job)
        return download(job.file_name, content)

    async def _job(self, request: Request) -> DocumentJob | None:
        """Give the caller's own document job; None if there is none with this name and key."""
        key, context = await self._calls.read(
            "ListModels", request, lambda given: form.needed(given, "document_key"), key_of(request)
        )
        await self._handlers.list_models(pb.ListModelsRequest(), context)  # counts as such a call
        job = await self._jobs.find(CallProtocol.DEEPL, request.path_params["document_id"])
        if job is None or job.client != context.caller.name:
            return None
        return job if secrets.compare_digest(job.key.encode(), key.encode()) else None


def _not_found(request: Request) -> Response:
    name = request.path_params["document_id"][:64]
    return errors.json_response({"message": f"there is no document {name!r} with this key, or no longer"}, 404)
