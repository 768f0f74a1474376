"""Every reason why a call can fail: the server raises these, and the client raises the very same again.

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

ServerUnavailableError and those below it are ConnectionErrors of Python, too, DeadlineExceededError and those below it
TimeoutErrors: `except ConnectionError` and `except TimeoutError` catch them.

On the wire the error of a call is a google.rpc.Status (AIP-193): `to_status` writes it, `from_rpc_error` reads it. That
of one text is a message of the contract itself: `to_text_error` writes it, `from_text_error` reads it. docs/errors.md
says of each error when it comes and what to do then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, NamedTuple, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2

from dragoman.v1 import translation_pb2 as pb

# The name of the service, for want of a DNS name: AIP-193 asks that it is globally unique, not that it resolves.
DOMAIN = "dragoman"

# gRPC peers begin to refuse trailing metadata at 8 KiB, and in it a message counts three times for its
# percent-encoding and once more, in base64, in the details: these bounds keep the worst case below.
_MESSAGE_BYTES = 800
_METADATA_VALUE_BYTES = 160
_VIOLATION_BYTES = 320
_VIOLATIONS_BYTES = 1_200

_STATUS_KEY = "grpc-status-details-bin"

_Detail = TypeVar("_Detail", bound=Message)


class FieldViolation(NamedTuple):
    """One field of a request and what is wrong with it.

    Attributes:
        field: the path of the field, such as `contents[3]` or `options.max_target_tokens`.
        description: what is wrong, with the limit and the given value.
    """

    field: str
    description: str


class DragomanError(Exception):
    """The root of all errors of Dragoman; raise one of its subclasses.

    Attributes:
        code: the gRPC status code of a call that fails so.
        reason: what happened, in UPPER_SNAKE_CASE; unique to the class.
        retryable: whether the same request can succeed later, or on another server.
        message: what happened, for people; names the limit and the given value.
        metadata: the values in the message, for programs.
        violations: the bad fields of the request, all of them.
        retry_delay_s: how many seconds to wait before the next try; None where none helps or none was named.
        request_id: of the failed call, as the server's log has it; "" where no server told.
    """

    # Not ClassVar: an error that was read from an answer has those of the answer.
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
    """A model on disk cannot be served: a file is missing, changed, or of another format."""

    code = grpc.StatusCode.INTERNAL
    reason = "BUNDLE_INVALID"


class DataError(DragomanError):
    """A file that a command reads, such as a corpus, cannot be used."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    reason = "DATA_INVALID"


class InvalidRequestError(DragomanError):
    """A field of the request is out of range: the request can never succeed."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    reason = "INVALID_REQUEST"


class AnswerTooLargeError(InvalidRequestError):
    """The answer would be larger than a message may be, though the request was not: fewer texts a call have room."""

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
    """The call has no API key where the server asks for one, or one that the server does not know."""

    code = grpc.StatusCode.UNAUTHENTICATED
    reason = "UNAUTHENTICATED"


class RateLimitedError(DragomanError):
    """The API key of the call has made as many calls of late as it may."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "RATE_LIMITED"
    retryable = True
    default_retry_delay_s = 1.0


class ConcurrencyLimitedError(DragomanError):
    """The API key of the call has as many calls running as it may, or its client as many documents."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "CONCURRENCY_LIMITED"
    retryable = True
    default_retry_delay_s = 0.5


class QueueFullError(DragomanError):
    """The server has as much work waiting as it takes; nothing of the request was started."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = "QUEUE_FULL"
    retryable = True
    default_retry_delay_s = 0.5


class OverloadedError(QueueFullError):
    """The request would wait longer than an interactive one may; nothing of it was started."""

    reason = "OVERLOADED"


class ServerUnavailableError(DragomanError, ConnectionError):
    """No server answered: the address is wrong, or the server is down, or the connection broke."""

    code = grpc.StatusCode.UNAVAILABLE
    reason = "SERVER_UNAVAILABLE"
    retryable = True


class DrainingError(ServerUnavailableError):
    """The server finishes what it has begun and then stops; it takes no new request."""

    reason = "DRAINING"
    default_retry_delay_s = 1.0


class LoadingError(ServerUnavailableError):
    """The server has not yet loaded its models, or not the one that the request needs."""

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
    """The server is too busy to complete the request by its deadline, so nothing of it was started."""

    reason = "DEADLINE_UNREACHABLE"


class RequestCancelledError(DragomanError):
    """The call was cancelled before the translation was complete."""

    code = grpc.StatusCode.CANCELLED
    reason = "CANCELLED"


class InternalError(DragomanError):
    """The server failed by its own fault."""

    code = grpc.StatusCode.INTERNAL
    reason = "INTERNAL"


class TextFailedError(InternalError):
    """The engine fails on one text, again and again and on it alone; the others of its call are not hurt."""

    reason = "TEXT_FAILED"


class UnrecognizedError(DragomanError):
    """An answer of neither this version's server nor gRPC itself, such as a proxy's UNAUTHENTICATED.

    Its `code` and `reason` are those of the answer.
    """

    reason = "UNRECOGNIZED"


def _tree(root: type[DragomanError]) -> Iterator[type[DragomanError]]:
    """Yield the class and all below it."""
    yield root
    for child in root.__subclasses__():
        yield from _tree(child)


_BY_REASON = {kind.reason: kind for kind in _tree(DragomanError)}
# What gRPC itself means by a status, where no server of ours spoke. RESOURCE_EXHAUSTED is absent on purpose:
# from gRPC it means a message over the size limit, which no retry helps.
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
    """Write an error as its wire form, which is at most some 6 KiB whatever the request held.

    Long texts are clipped, and violations that do not fit are counted in the metadata `omitted_violations`.

    Args:
        error: any error of this module.
        request_id: of the call that fails with it; "": it is not known.

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
    """Write the error of one text, clipped as in `to_status`; of several bad fields, it names the first."""
    return pb.TextError(
        code=error.code.value[0],
        reason=error.reason,
        message=_clip(error.message, _MESSAGE_BYTES),
        metadata=_clipped_metadata(error),
        field=error.violations[0].field if error.violations else "",
    )


def from_rpc_error(rpc_error: grpc.RpcError) -> DragomanError:
    """Read the error of a failed call: of the class that the server raised, where it did.

    Args:
        rpc_error: what a call of `grpc` or `grpc.aio` raised.

    Returns:
        The error to raise. A reason that this version does not know, or none, gives the class of the status
        code, and `UnrecognizedError` if there is none.
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
    """Read the error of one text, `TranslatedText.text_error`: of the class that the server gave it, as for a call."""
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
    """Find the class of a reason, else that of a status code."""
    return _BY_REASON.get(reason) or _BY_CODE.get(code, UnrecognizedError)


def _clip(text: str, limit_bytes: int) -> str:
    """Cut a text to a number of UTF-8 bytes, at a character, and say so with an ellipsis."""
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
    """Clip the violations and keep the first of them, as many as fit."""
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
    """Find the wire form in the trailing metadata; an empty one where there is none or it is broken."""
    for key, value in rpc_error.trailing_metadata() or ():
        if key == _STATUS_KEY:
            try:
                return status_pb2.Status.FromString(value)
            except DecodeError:
                break
    return status_pb2.Status()


def _detail(status: status_pb2.Status, message: _Detail) -> _Detail:
    """Fill an empty message with the first detail of its type, and leave it empty where there is none."""
    for packed in status.details:
        if packed.Is(message.DESCRIPTOR):
            packed.Unpack(message)
            break
    return message


def _retry_delay_s(status: status_pb2.Status) -> float | None:
    info = _detail(status, error_details_pb2.RetryInfo())
    return info.retry_delay.ToNanoseconds() / 1e9 if info.HasField("retry_delay") else None
