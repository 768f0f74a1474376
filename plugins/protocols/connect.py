"""The Connect protocol, unary and in JSON: https://connectrpc.com/docs/protocol#unary-rpcs."""

import base64
from typing import Final

import grpc
from google.protobuf import json_format
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dragoman.errors import DragomanError, InvalidRequestError, to_status
from plugins.http import errors
from plugins.http.methods import JSON, Methods, kind_of
from service.handlers.methods import Method, unary
from service.wire import SERVICE, CallProtocol

_VERSION_HEADER: Final = "connect-protocol-version"
_VERSION: Final = "1"


def routes(answers: Methods) -> list[BaseRoute]:
    """Make the routes; Connect uses the method names of gRPC."""

    def route(method: Method) -> Route:
        async def endpoint(request: Request) -> Response:
            kind = kind_of(request)
            if kind != JSON:
                headers = {"accept-post": JSON}
                return errors.plain_answer(415, f"content-type: must be {JSON}, is {kind[:100]!r}", headers)
            try:
                if (version := request.headers.get(_VERSION_HEADER, _VERSION)) != _VERSION:
                    raise InvalidRequestError(f"{_VERSION_HEADER}: must be {_VERSION}, is {version[:40]!r}")
                return await answers.answer(method, CallProtocol.CONNECT, request)
            except DragomanError as error:
                return failed(error)

        return Route(f"/{SERVICE}/{method.name}", endpoint, methods=["POST"])

    return [route(method) for method in unary()]


def failed(error: DragomanError) -> Response:
    """Make the answer to a failed call: https://connectrpc.com/docs/protocol#error-end-stream."""
    status = to_status(error, error.request_id)
    details = [
        {
            "type": detail.TypeName(),
            "value": base64.b64encode(detail.value).decode().rstrip("="),
            "debug": json_format.MessageToDict(detail),
        }
        for detail in status.details
    ]
    code = "canceled" if error.code is grpc.StatusCode.CANCELLED else error.code.name.lower()
    body = {"code": code, "message": status.message, "details": details}
    return errors.json_response(body, errors.status_of(error), errors.headers_of(error))
