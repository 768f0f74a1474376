"""The errors of a call, as a tree of classes: the server raises them, and the client raises the same class again.

    DragomanError                    code                reason                  retryable
    ├── BundleError                  INTERNAL            BUNDLE_INVALID          no   (never in an answer)
    ├── DataError                    INVALID_ARGUMENT    DATA_INVALID            no   (never in an answer)
    ├── InvalidRequestError          INVALID_ARGUMENT    INVALID_REQUEST         no
    │   ├── AnswerTooLargeError      INVALID_ARGUMENT    ANSWER_TOO_LARGE        no
    │   ├── UnknownGlossaryError     INVALID_ARGUMENT    UNKNOWN_GLOSSARY        no
    │   ├── UnknownModelError        INVALID_ARGUMENT    UNKNOWN_MODEL           no
    │   └── UnknownLanguagePairError INVALID_ARGUMENT    UNKNOWN_LANGUAGE_PAIR   no
    ├── UnauthenticatedError         UNAUTHENTICATED     UNAUTHENTICATED         no
    ├── RateLimitedError             RESOURCE_EXHAUSTED  RATE_LIMITED            yes
    ├── ConcurrencyLimitedError      RESOURCE_EXHAUSTED  CONCURRENCY_LIMITED     yes
    ├── QueueFullError               RESOURCE_EXHAUSTED  QUEUE_FULL              yes
    │   └── OverloadedError          RESOURCE_EXHAUSTED  OVERLOADED              yes
    ├── ServerUnavailableError       UNAVAILABLE         SERVER_UNAVAILABLE      yes
    │   ├── DrainingError            UNAVAILABLE         DRAINING                yes
    │   ├── LoadingError             UNAVAILABLE         LOADING                 yes
    │   └── ModelUnavailableError    UNAVAILABLE         MODEL_UNAVAILABLE       yes
    ├── DeadlineExceededError        DEADLINE_EXCEEDED   DEADLINE_EXCEEDED       no
    │   └── DeadlineUnreachableError DEADLINE_EXCEEDED   DEADLINE_UNREACHABLE    no
    ├── RequestCancelledError        CANCELLED           CANCELLED               no
    ├── InternalError                INTERNAL            INTERNAL                no
    │   └── TextFailedError          INTERNAL            TEXT_FAILED             no
    └── UnrecognizedError            as in the answer    as in the answer        no

ServerUnavailableError and its subclasses are also Python's ConnectionError, DeadlineExceededError and its subclasses
also TimeoutError, so that `except ConnectionError` and `except TimeoutError` catch them.

On the wire the error of a call is a google.rpc.Status (AIP-193): `to_status` writes it, `from_rpc_error` reads it. The
error of a single text is a message of the contract: `to_text_error` writes it, `from_text_error` reads it.
docs/errors.md says when each error occurs and how to handle it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, NamedTuple, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

from dragoman.v1 import translation_pb2 as pb

# The service's name, since it has no DNS name: AIP-193 asks for a globally unique name, which need not resolve.
DOMAIN = "dragoman"

# gRPC peers may refuse trailing metadata above 8 KiB. A message can count there three times its size for its
# percent-encoding, and once more in the details, in base64: these bounds keep the worst case below the limit.
_MESSAGE_BYTES = 800
_METADATA_VALUE_BYTES = 160
_VIOLATION_BYTES = 320
_VIOLATIONS_BYTES = 1_200

_STATUS_KEY = "grpc-status-details-bin"

_Detail = TypeVar("_Detail", bound=Message)


class FieldViolation(NamedTuple):
    """A field of a request, and what is wrong with its value.

    Attributes:
        field: the path of the field, such as `contents[3]` or `options.max_target_tokens`.
        description: what is wrong, with the limit and the given value.
    """

    field: str
    description: str


class DragomanError(Exception):
    """The root of all errors of Dragoman; raise one of its subclasses.

    Attributes:
        code: the gRPC status code of the failed call.
        reason: the kind of error, in UPPER_SNAKE_CASE; unique to the class.
        retryable: whether the same request can succeed later, or on another server.
        message: the description for people, with the limit and the given value.
        metadata: the values in the message, for programs.
        violations: all invalid fields of the request.
        retry_delay_s: how many seconds to wait before the next try; None if no retry helps or no time is known.
        request_id: the id of the failed call in the server's log; "" if the server sent none.
    """

    # Not ClassVar: an error read from an answer has the values of the answer.
    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN
    reason: str = "UNKNOWN"
    retryable: ClassVar[bool] = False
    default_retry_delay_s: ClassVar[float | None] = None

    def __init__(
        self,
        message: str,
        *,
        metadata: Mapping[str, str] | None = None,
        violations: Iterable[tuple[str, str]] = (),
        retry_delay_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.metadata = dict(metadata or {})
        self.violations = [FieldViolation(*violation) for violation in violations]
        self.retry_delay_s = self.default_retry_delay_s if retry_delay_s is None else retry_delay_s
        self.request_id = ""


class BundleError(DragomanError):
    """A bundle on disk cannot be served: a file is missing, changed, or of another format."""

    code = grpc.StatusCode.INTERNAL
    reason = "BUNDLE_INVALID"


class DataError(DragomanError):
    """A file that a command reads, such as a corpus, is unreadable or invalid."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    reason = "DATA_INVALID"


class InvalidRequestError(DragomanError):
    """A field of the request is invalid: the same request can never succeed."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    reason = "INVALID_REQUEST"


class AnswerTooLargeError(InvalidRequestError):
    """The answer would exceed the size limit of a message, though the request did not; send fewer texts in a call."""

    reason = "ANSWER_TOO_LARGE"


class UnknownGlossaryError(InvalidRequestError):
    """The server has stored no glossary of this name."""

    reason = "UNKNOWN_GLOSSARY"


class UnknownModelError(InvalidRequestError):
    """The server has no model of the given name."""

    reason = "UNKNOWN_MODEL"


class UnknownLanguagePairError(InvalidRequestError):
    """The server has no model that translates between the two languages."""

    reason = "UNKNOWN_LANGUAGE_PAIR"


class UnauthenticatedError(DragomanError):
    """The call has no API key though the server requires one, or a key that the server does not know."""

    code = grpc.StatusCode.UNAUTHENTICATED
    reason = "UNAUTHENTICATED"


class RateLimitedError(DragomanError):
    """The API key of the call has reached its limit of calls per time."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "RATE_LIMITED"
    retryable = True
    default_retry_delay_s = 1.0


class ConcurrencyLimitedError(DragomanError):
    """The API key of the call has reached its limit of calls at a time, or the client its limit of documents."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "CONCURRENCY_LIMITED"
    retryable = True
    default_retry_delay_s = 0.5


class QueueFullError(DragomanError):
    """The server's queue is full; nothing of the request was started."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "QUEUE_FULL"
    retryable = True
    default_retry_delay_s = 0.5


class OverloadedError(QueueFullError):
    """The request would wait longer than allowed for interactive requests; nothing of it was started."""

    reason = "OVERLOADED"


class ServerUnavailableError(DragomanError, ConnectionError):
    """No server answered: the address is wrong, the server is down, or the connection broke."""

    code = grpc.StatusCode.UNAVAILABLE
    reason = "SERVER_UNAVAILABLE"
    retryable = True


class DrainingError(ServerUnavailableError):
    """The server finishes its running calls and then stops; it takes no new request."""

    reason = "DRAINING"
    default_retry_delay_s = 1.0


class LoadingError(ServerUnavailableError):
    """The server is still loading its models, or the model that the request needs."""

    reason = "LOADING"
    default_retry_delay_s = 1.0


class ModelUnavailableError(ServerUnavailableError):
    """The server could not load the model that the request needs; it tries again later."""

    reason = "MODEL_UNAVAILABLE"
    default_retry_delay_s = 1.0


class DeadlineExceededError(DragomanError, TimeoutError):
    """The deadline of the call passed before the translation was complete."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED
    reason = "DEADLINE_EXCEEDED"


class DeadlineUnreachableError(DeadlineExceededError):
    """The server is too busy to complete the request by its deadline; nothing of it was started."""

    reason = "DEADLINE_UNREACHABLE"


class RequestCancelledError(DragomanError):
    """The call was cancelled before the translation was complete."""

    code = grpc.StatusCode.CANCELLED
    reason = "CANCELLED"


class InternalError(DragomanError):
    """The server failed because of its own fault."""

    code = grpc.StatusCode.INTERNAL
    reason = "INTERNAL"


class TextFailedError(InternalError):
    """The engine fails repeatedly on this one text; the other texts of the call are not affected."""

    reason = "TEXT_FAILED"


class UnrecognizedError(DragomanError):
    """An answer that neither gRPC nor a server of this version sends, such as a proxy's UNAUTHENTICATED.

    Its `code` and `reason` are those of the answer.
    """

    reason = "UNRECOGNIZED"


def _tree(root: type[DragomanError]) -> Iterator[type[DragomanError]]:
    """Yield a class and all its subclasses."""
    yield root
    for child in root.__subclasses__():
        yield from _tree(child)


_BY_REASON = {kind.reason: kind for kind in _tree(DragomanError)}
# The meaning of gRPC's own statuses, without an answer of a Dragoman server. RESOURCE_EXHAUSTED is absent: from gRPC it
# means a message over the size limit, where no retry helps.
_BY_CODE: dict[grpc.StatusCode, type[DragomanError]] = {
    kind.code: kind
    for kind in (
        InvalidRequestError,
        ServerUnavailableError,
        DeadlineExceededError,
        RequestCancelledError,
        InternalError,
    )
}
_CODES = {code.value[0]: code for code in grpc.StatusCode}


def to_status(error: DragomanError, request_id: str = "") -> status_pb2.Status:
    """Write an error in its wire form, of at most about 6 KiB, whatever the request contained.

    Long texts are clipped; the metadata `omitted_violations` counts the violations that do not fit.

    Args:
        error: any error of this module.
        request_id: the id of the failed call; "": unknown.

    Returns:
        The status, for `grpc_status.rpc_status.to_status`: exactly one ErrorInfo, a BadRequest if there are
        violations, a RetryInfo if there is a delay, and a RequestInfo if there is a request id.
    """
    status = status_pb2.Status(code=error.code.value[0], message=_clip(error.message, _MESSAGE_BYTES))
    status.details.add().Pack(_error_info(error))
    if error.violations:
        status.details.add().Pack(_bad_request(error))
    if error.retry_delay_s is not None:
        status.details.add().Pack(_retry_info(error.retry_delay_s))
    if request_id:
        status.details.add().Pack(error_details_pb2.RequestInfo(request_id=request_id))
    return status


def to_text_error(error: DragomanError) -> pb.TextError:
    """Write the error of one text, clipped as in `to_status`; of several invalid fields, only the first is named."""
    return pb.TextError(
        code=error.code.value[0],
        reason=error.reason,
        message=_clip(error.message, _MESSAGE_BYTES),
        metadata=_clipped_metadata(error),
        field=error.violations[0].field if error.violations else "",
    )


def from_rpc_error(rpc_error: grpc.RpcError) -> DragomanError:
    """Read the error of a failed call, with the class that the server raised if a server answered.

    Args:
        rpc_error: the error that a call of `grpc` or `grpc.aio` raised.

    Returns:
        The error to raise. Without a known reason, the status code decides the class; `UnrecognizedError` if no class
        has this code.
    """
    status, code = _status_of(rpc_error), rpc_error.code()
    info = _detail(status, error_details_pb2.ErrorInfo())
    kind = _kind(info.reason if info.domain == DOMAIN else "", code)
    error = kind(
        rpc_error.details() or code.name,
        metadata=info.metadata,
        violations=[(v.field, v.description) for v in _detail(status, error_details_pb2.BadRequest()).field_violations],
        retry_delay_s=_retry_delay_s(status),
    )
    error.code = code
    error.reason = info.reason or error.reason
    error.request_id = _detail(status, error_details_pb2.RequestInfo()).request_id
    return error


def from_text_error(message: pb.TextError) -> DragomanError:
    """Read `TranslatedText.text_error`, the error of one text; its class is chosen as for the error of a call."""
    code = _CODES.get(message.code, grpc.StatusCode.UNKNOWN)
    description = message.message.removeprefix(f"{message.field}: ")
    error = _kind(message.reason, code)(
        message.message or code.name,
        metadata=message.metadata,
        violations=[(message.field, description)] if message.field else (),
    )
    error.code = code
    error.reason = message.reason or error.reason
    return error


def _kind(reason: str, code: grpc.StatusCode) -> type[DragomanError]:
    """Find the class of a reason, or else the class of a status code."""
    return _BY_REASON.get(reason) or _BY_CODE.get(code, UnrecognizedError)


def _clip(text: str, limit_bytes: int) -> str:
    """Shorten a text to a number of UTF-8 bytes, without splitting a character, and mark the cut with an ellipsis."""
    data = text.encode(errors="replace")
    if len(data) <= limit_bytes:
        return data.decode()
    return data[: limit_bytes - len("…".encode())].decode(errors="ignore") + "…"


def _error_info(error: DragomanError) -> error_details_pb2.ErrorInfo:
    metadata = _clipped_metadata(error)
    omitted = len(error.violations) - len(_violations_that_fit(error))
    if omitted:
        metadata["omitted_violations"] = str(omitted)
    return error_details_pb2.ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=metadata)


def _clipped_metadata(error: DragomanError) -> dict[str, str]:
    return {key: _clip(value, _METADATA_VALUE_BYTES) for key, value in error.metadata.items()}


def _violations_that_fit(error: DragomanError) -> list[FieldViolation]:
    """Clip the violations, and return the first ones that fit."""
    kept: list[FieldViolation] = []
    room_bytes = _VIOLATIONS_BYTES
    for field, description in error.violations:
        violation = FieldViolation(field, _clip(description, _VIOLATION_BYTES))
        room_bytes -= sum(len(part.encode()) for part in violation)
        if room_bytes < 0:
            break
        kept.append(violation)
    return kept


def _bad_request(error: DragomanError) -> error_details_pb2.BadRequest:
    return error_details_pb2.BadRequest(
        field_violations=[
            error_details_pb2.BadRequest.FieldViolation(field=field, description=description)
            for field, description in _violations_that_fit(error)
        ]
    )


def _retry_info(delay_s: float) -> error_details_pb2.RetryInfo:
    info = error_details_pb2.RetryInfo()
    info.retry_delay.FromNanoseconds(round(delay_s * 1e9))
    return info


def _status_of(rpc_error: grpc.RpcError) -> status_pb2.Status:
    """Find the status in the trailing metadata; an empty one if it is missing or broken."""
    for key, value in rpc_error.trailing_metadata() or ():
        if key == _STATUS_KEY:
            try:
                return status_pb2.Status.FromString(value)
            except DecodeError:
                break
    return status_pb2.Status()


def _detail(status: status_pb2.Status, message: _Detail) -> _Detail:
    """Fill an empty message with the first detail of its type; without one, the message stays empty."""
    for packed in status.details:
        if packed.Is(message.DESCRIPTOR):
            packed.Unpack(message)
            break
    return message


def _retry_delay_s(status: status_pb2.Status) -> float | None:
    info = _detail(status, error_details_pb2.RetryInfo())
    return info.retry_delay.ToNanoseconds() / 1e9 if info.HasField("retry_delay") else None
