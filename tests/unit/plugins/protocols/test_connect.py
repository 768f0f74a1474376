"""Errors by the protocol of Connect."""

import base64
import json

from google.rpc import error_details_pb2

from dragoman.errors import InvalidRequestError, RequestCancelledError
from plugins.protocols.connect import failed


def test_details_are_those_of_grpc() -> None:
    answer = failed(InvalidRequestError("a: too long", violations=[("a", "too long")], metadata={"limit": "3"}))
    told = json.loads(answer.body)
    assert (answer.status_code, told["code"], told["message"]) == (400, "invalid_argument", "a: too long")
    first = error_details_pb2.ErrorInfo.FromString(base64.b64decode(told["details"][0]["value"] + "=="))
    assert (first.reason, dict(first.metadata)) == ("INVALID_REQUEST", {"limit": "3"})


def test_a_call_that_was_cancelled_has_the_code_of_connect() -> None:
    answer = failed(RequestCancelledError("a"))
    assert (answer.status_code, json.loads(answer.body)["code"]) == (499, "canceled")


def test_half_a_character_is_written() -> None:
    assert b"?" in failed(InvalidRequestError("\ud800")).body
