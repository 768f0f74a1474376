"""LibreTranslate's API for files: one call translates a file and answers with the address of the translated file."""

from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dragoman.errors import DragomanError
from plugins.documents.documents import METHOD, AskedDocument, check_name
from plugins.documents.jobs import DocumentJobs
from plugins.http import errors
from plugins.http.calls import while_client_stays
from plugins.protocols import form
from plugins.protocols.download import download
from plugins.protocols.libretranslate import OWN_NAMES, failed
from plugins.protocols.parameter_calls import ParameterCalls, answered, in_own_names
from service.wire import CallProtocol

_FETCHED_AT: Final = "/download_file/"


class LibreTranslateFiles:
    """The routes for files."""

    def __init__(self, jobs: DocumentJobs, calls: ParameterCalls) -> None:
        self._jobs = jobs
        self._calls = calls

    def routes(self) -> list[BaseRoute]:
        """Make the routes."""
        return [
            Route("/translate_file", answered(self._translate, _failed), methods=["POST"]),
            Route(_FETCHED_AT + "{name}", self._fetch),
        ]

    async def _translate(self, request: Request) -> Any:
        asked, context = await self._calls.read(METHOD, request, _asked)
        job = await self._jobs.begin(asked, context)
        try:
            async with while_client_stays(request.receive):
                await job.task
        except BaseException:  # also if the client has disconnected
            await self._jobs.forget(job)
            raise
        path = f"{_FETCHED_AT}{job.id}.{quote(asked.name, safe='')}"
        return {"translatedFileUrl": self._calls.origin(request) + path}

    async def _fetch(self, request: Request) -> Response:
        try:
            job = await self._jobs.find(CallProtocol.LIBRETRANSLATE, request.path_params["name"].partition(".")[0])
            if job is None or not job.task.done():
                return errors.json_response({"error": "there is no such file, or it is no longer kept"}, 404)
            return download(job.file_name, job.task.result())
        except DragomanError as error:
            return _failed(error)


def _failed(error: DragomanError) -> Response:
    """Make the answer to a failed call; the server's own page also needs the reason."""
    answer = failed(error)
    content = {"error": in_own_names(error, OWN_NAMES), "reason": error.reason, "metadata": error.metadata}
    return errors.json_response(content, answer.status_code, errors.headers_of(error))


def _asked(given: dict[str, Any]) -> AskedDocument:
    file = form.file_of(given, "file")
    source, target = (form.needed(given, name) for name in ("source", "target"))
    return AskedDocument(check_name(file.name), file.content, source, target)
