"""Errors over HTTP: the status of each code, and the JSON of AIP-193."""

import http
import json
import math
from typing import Any, Final

import grpc
from google.protobuf import json_format
from google.rpc import error_details_pb2
from starlette.responses import Response

from dragoman.errors import DragomanError, DrainingError, UnauthenticatedError, to_status

# The mapping of google.rpc.Code, https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
_STATUSES: Final = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}
# Names for statuses of requests that reach no method; of any other, INVALID_ARGUMENT.
_NAMES: Final = {
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
}
# Printing a detail needs its type; this import adds the types of google.rpc to the pool.
_ = error_details_pb2.ErrorInfo


def status_of(error: DragomanError) -> int:
    """Give the HTTP status of an error."""
    return _STATUSES.get(error.code, 500)


def headers_of(error: DragomanError) -> dict[str, str]:
    """Give the headers for an error: when to retry, how to send a key."""
    headers = {}
    if error.retry_delay_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_delay_s)))
    if isinstance(error, UnauthenticatedError):
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, DrainingError):
        headers["connection"] = "close"
    return headers


def json_of(error: DragomanError) -> dict[str, Any]:
    """Write an error as JSON, as AIP-193 defines it."""
    status = to_status(error, error.request_id)
    return {
        "error": {
            "code": status_of(error),
            "status": error.code.name,
            "message": status.message,
            "details": [json_format.MessageToDict(detail) for detail in status.details],
        }
    }


def answer(error: DragomanError) -> Response:
    """Make the answer to a failed call."""
    return json_response(json_of(error), status_of(error), headers_of(error))


def plain_answer(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """Make the answer to a request that reaches no method."""
    name = _NAMES.get(status, "INVALID_ARGUMENT")
    return json_response({"error": {"code": status, "status": name, "message": message}}, status, headers)


def json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Make an answer in JSON."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    return Response(body, status, headers, media_type="application/json")


def refusal(status: int, message: str) -> bytes:
    """Write a complete HTTP/1.1 answer to an invalid request; it ends the connection."""
    name = _NAMES.get(status, "INVALID_ARGUMENT")
    body = json.dumps({"error": {"code": status, "status": name, "message": message}}).encode()
    head = f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body
