import inspect
import pickle
import re

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

import dragoman.errors
from dragoman import Client
from dragoman.errors import (
    DOMAIN,
    BundleError,
    DeadlineExceededError,
    DragomanError,
    InternalError,
    InvalidRequestError,
    QueueFullError,
    RequestCancelledError,
    ServerUnavailableError,
    UnknownLanguagePairError,
    UnrecognizedError,
    from_rpc_error,
    from_text_error,
    to_status,
    to_text_error,
)
from dragoman.v1 import translation_pb2 as pb

CLASSES = [kind for _, kind in inspect.getmembers(dragoman.errors, inspect.isclass) if issubclass(kind, DragomanError)]
ANSWERS = [kind for kind in CLASSES if kind not in (DragomanError, BundleError, UnrecognizedError)]


class FailedCall(grpc.RpcError):
    """The part of gRPC's error that an answer decides, for answers that no server of ours gives."""

    def __init__(self, code: grpc.StatusCode, details: str = "", metadata: object = None) -> None:
        self._answer = (code, details, metadata)

    def code(self) -> grpc.StatusCode:
        return self._answer[0]

    def details(self) -> str:
        return self._answer[1]

    def trailing_metadata(self) -> object:
        return self._answer[2]


def failed(status: status_pb2.Status) -> FailedCall:
    code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
    metadata = (("other", "x"), ("grpc-status-details-bin", status.SerializeToString()))
    return FailedCall(code, status.message, metadata)


def details_of(status: status_pb2.Status) -> dict[str, any_pb2.Any]:
    names = [packed.TypeName() for packed in status.details]
    assert len(set(names)) == len(names), "each type of detail at most once"
    return dict(zip(names, status.details, strict=True))


def error_info_of(status: status_pb2.Status) -> error_details_pb2.ErrorInfo:
    info = error_details_pb2.ErrorInfo()
    assert details_of(status)["google.rpc.ErrorInfo"].Unpack(info)
    return info


def test_every_class_has_its_own_reason() -> None:
    reasons = [kind.reason for kind in CLASSES]
    assert len(set(reasons)) == len(reasons)
    for kind in CLASSES:
        assert re.fullmatch(r"[A-Z][A-Z0-9_]{0,62}", kind.reason)


def test_the_drawn_tree_is_the_tree() -> None:
    row = re.compile(r"^    [│ ├└─]*(\w+Error) +([A-Z_]+) +([A-Z_]+) +(yes|no)\b", re.MULTILINE)
    drawn = {match[1]: match.groups()[1:] for match in row.finditer(dragoman.errors.__doc__ or "")}
    defined = {
        kind.__name__: (kind.code.name, kind.reason, "yes" if kind.retryable else "no")
        for kind in CLASSES
        if kind not in (DragomanError, UnrecognizedError)
    }
    assert drawn == defined


@pytest.mark.parametrize("kind", ANSWERS)
def test_survives_the_wire(kind: type[DragomanError], echo) -> None:
    sent = kind(
        'contents[1] has 1,200,000 bytes, the limit is 1,100,000: "Größe" €😀',
        metadata={"limit_bytes": "1100000", "given_bytes": "1200000"},
        violations=[("contents[1]", "too long: 😀"), ("mime_type", "only text/plain")],
        retry_delay_s=1.25,
    )
    echo.servicer.errors = [sent] * 4  # UNAVAILABLE is tried four times
    with Client(echo.address, retries=0) as client, pytest.raises(DragomanError) as caught:
        client.translate("a")
    received = caught.value
    assert type(received) is kind
    assert (received.code, received.reason, received.retryable) == (kind.code, kind.reason, kind.retryable)
    assert str(received) == received.message == sent.message
    assert received.metadata == sent.metadata
    assert received.violations == sent.violations
    assert received.retry_delay_s == 1.25


@pytest.mark.parametrize("kind", ANSWERS)
def test_status_has_only_the_details_that_say_something(kind: type[DragomanError]) -> None:
    details = details_of(to_status(kind("no")))
    delay = kind.default_retry_delay_s is not None
    assert set(details) == {"google.rpc.ErrorInfo"} | ({"google.rpc.RetryInfo"} if delay else set())
    assert error_info_of(to_status(kind("no"))).domain == DOMAIN


short_texts = st.text(st.characters(codec="utf-8"), max_size=50)


@given(
    kind=st.sampled_from(ANSWERS),
    message=short_texts.filter(bool),
    metadata=st.dictionaries(st.from_regex(r"[a-z_]{1,16}", fullmatch=True), st.text("aä😀", max_size=40), max_size=3),
    violations=st.lists(st.tuples(st.text("abc[].0", max_size=20), st.text("aä😀", max_size=20)), max_size=5),
    delay_ms=st.none() | st.integers(0, 10**6),
)
def test_what_fits_comes_back_whole(kind, message, metadata, violations, delay_ms) -> None:
    delay_s = None if delay_ms is None else delay_ms / 1000
    sent = kind(message, metadata=metadata, violations=violations, retry_delay_s=delay_s)
    received = from_rpc_error(failed(to_status(sent)))
    assert type(received) is kind
    assert received.message == message
    assert received.metadata == metadata
    assert received.violations == violations
    assert received.retry_delay_s == pytest.approx(sent.retry_delay_s) or sent.retry_delay_s is None


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_error_of_a_text_comes_back_as_the_same(kind: type[DragomanError]) -> None:
    sent = kind("contents[1]: too long", metadata={"model": "x"}, violations=[("contents[1]", "too long")])
    received = from_text_error(pb.TextError.FromString(to_text_error(sent).SerializeToString()))
    assert type(received) is kind
    assert (received.code, received.reason, received.message) == (kind.code, kind.reason, sent.message)
    assert (received.metadata, received.violations) == (sent.metadata, sent.violations)


def test_the_error_of_a_text_names_a_field_only_where_one_is_bad() -> None:
    assert to_text_error(InternalError("broken")).field == ""
    assert from_text_error(to_text_error(InternalError("broken"))).violations == []


def test_the_error_of_a_text_is_clipped() -> None:
    sent = to_text_error(InternalError("😀" * 10_000, metadata={"model": "😀" * 10_000}))
    assert len(sent.SerializeToString()) < 1_100
    assert sent.message.endswith("…")


def test_the_error_of_a_text_of_a_later_server_is_kept() -> None:
    error = from_text_error(pb.TextError(code=8, reason="TOO_RUDE", message="no"))
    assert type(error) is UnrecognizedError
    assert (error.code, error.reason, error.message) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_RUDE", "no")
    assert type(from_text_error(pb.TextError(code=99))) is UnrecognizedError


@given(
    character=st.sampled_from("aä€😀\ud800"),
    length=st.integers(0, 100_000),
    violations=st.integers(0, 2_000),
)
def test_whatever_the_request_held_the_trailing_metadata_stays_small(character, length, violations) -> None:
    text = character * length
    error = InvalidRequestError(
        text,
        metadata={"model": text, "limit": "1"},
        violations=[(f"contents[{index}]", text) for index in range(violations)],
    )
    status = to_status(error)
    percent_encoded_bytes = 3 * len(status.message.encode())
    assert percent_encoded_bytes + len(status.SerializeToString()) * 4 / 3 < 7_500
    received = from_rpc_error(failed(status))
    omitted = int(received.metadata.get("omitted_violations", 0))
    assert len(received.violations) + omitted == violations
    assert omitted == 0 or received.violations


def test_a_huge_error_arrives_as_itself(echo) -> None:
    text = "😀" * 300_000
    violations = [(f"contents[{index}]", text) for index in range(1024)]
    echo.servicer.errors = [UnknownLanguagePairError(text, metadata={"source": text}, violations=violations)]
    with Client(echo.address) as client, pytest.raises(UnknownLanguagePairError) as caught:
        client.translate("a")
    assert caught.value.message.endswith("…")
    assert int(caught.value.metadata["omitted_violations"]) > 1000


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, ServerUnavailableError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, DeadlineExceededError),
        (grpc.StatusCode.CANCELLED, RequestCancelledError),
        (grpc.StatusCode.INTERNAL, InternalError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, UnrecognizedError),
        (grpc.StatusCode.UNAUTHENTICATED, UnrecognizedError),
        (grpc.StatusCode.UNKNOWN, UnrecognizedError),
    ],
)
def test_without_error_info_the_status_code_decides(code: grpc.StatusCode, kind: type[DragomanError]) -> None:
    for metadata in (None, (), (("grpc-status-details-bin", b"\xff broken"),)):
        error = from_rpc_error(FailedCall(code, "as told", metadata))
        assert type(error) is kind
        assert (error.code, error.reason, error.message) == (code, kind.reason, "as told")
    assert from_rpc_error(FailedCall(code)).message == code.name


def test_a_reason_of_a_later_server_is_kept() -> None:
    status = status_pb2.Status(code=8, message="too many calls")
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(reason="QUOTA_OF_USER", domain=DOMAIN, metadata={"user": "x"})
    )
    error = from_rpc_error(failed(status))
    assert type(error) is UnrecognizedError
    assert (error.code, error.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_OF_USER")
    assert error.metadata == {"user": "x"}


def test_a_reason_of_another_domain_is_not_ours() -> None:
    status = status_pb2.Status(code=14, message="proxy")
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=QueueFullError.reason, domain="proxy.example"))
    assert type(from_rpc_error(failed(status))) is ServerUnavailableError


def test_a_retry_delay_is_given_or_of_the_class() -> None:
    assert QueueFullError("full").retry_delay_s == QueueFullError.default_retry_delay_s
    assert QueueFullError("full", retry_delay_s=0.0).retry_delay_s == 0.0
    assert InternalError("broken").retry_delay_s is None


def test_pickles() -> None:
    error = InvalidRequestError("bad", metadata={"limit": "1"}, violations=[("contents", "empty")])
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is InvalidRequestError
    assert vars(copy) == vars(error)
    assert copy.args == ("bad",)
