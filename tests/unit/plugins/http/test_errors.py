import json

import grpc
import pytest
from google.protobuf import any_pb2, json_format

from dragoman.errors import (
    DragomanError,
    DrainingError,
    InternalError,
    InvalidRequestError,
    RateLimitedError,
    RequestCancelledError,
    UnauthenticatedError,
    to_status,
)
from plugins.http import errors


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidRequestError("a"), 400),
        (UnauthenticatedError("a"), 401),
        (RateLimitedError("a"), 429),
        (RequestCancelledError("a"), 499),
        (InternalError("a"), 500),
        (DrainingError("a"), 503),
    ],
)
def test_each_code_has_its_status(error: DragomanError, status: int) -> None:
    answer = errors.answer(error)
    assert answer.status_code == status
    assert json.loads(answer.body)["error"]["code"] == status


def test_every_code_of_grpc_has_a_status_of_a_failure() -> None:
    for code in set(grpc.StatusCode) - {grpc.StatusCode.OK}:
        error = DragomanError("a")
        error.code = code
        assert 400 <= errors.status_of(error) < 600


def test_details_are_those_of_grpc() -> None:
    error = InvalidRequestError("a: too long", violations=[("a", "too long")], metadata={"limit": "3"})
    error.request_id = "id-7"
    expected = list(to_status(error, "id-7").details)
    told = json.loads(errors.answer(error).body)["error"]
    assert (told["status"], told["message"]) == ("INVALID_ARGUMENT", "a: too long")
    assert [json_format.ParseDict(detail, any_pb2.Any()) for detail in told["details"]] == expected


@pytest.mark.parametrize(("delay_s", "told"), [(0.001, "1"), (1.0, "1"), (1.2, "2"), (90.0, "90")])
def test_retry_after_is_whole_seconds_and_not_too_early(delay_s: float, told: str) -> None:
    assert errors.answer(RateLimitedError("a", retry_delay_s=delay_s)).headers["retry-after"] == told


def test_a_server_that_drains_ends_the_connection() -> None:
    assert errors.answer(DrainingError("a")).headers["connection"] == "close"
    assert "connection" not in errors.answer(RateLimitedError("a")).headers
