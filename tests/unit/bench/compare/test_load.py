"""Short loads on the server of these tests; what a load shows is checked, never how fast it was."""

import sys
from typing import Any

import pytest

from bench.compare.load import Answered, closed_load, open_load
from bench.load.texts import requests_of
from bench.server_process import ServerError, running
from dragoman import errors
from dragoman.v1 import translation_pb2

REQUESTS = requests_of(["One two.", "Three."], "en-de", max_target_tokens=25)


def test_requests_ask_for_the_model_and_the_limit() -> None:
    request = translation_pb2.TranslateTextRequest.FromString(REQUESTS[1])
    assert (request.model, list(request.contents), request.options.max_target_tokens) == ("en-de", ["Three."], 25)
    [unlimited] = requests_of(["One."], "en-de")
    assert not translation_pb2.TranslateTextRequest.FromString(unlimited).options.HasField("max_target_tokens")


def test_open_load_sends_what_was_drawn_and_holds(server: Any) -> None:
    load = open_load(server.address, REQUESTS, 100.0, 0.1, 0.3, seed=1)
    assert load.failed == 0
    assert load.holds(1e6)
    assert not load.holds(0.0)
    assert len(server.requests) > 10


def test_closed_load_goes_on_until_the_end(server: Any) -> None:
    load = closed_load(server.address, REQUESTS, 1, 0.0, 0.2)
    assert load.p50_ms is not None
    assert load.p95_ms is not None
    assert load.rate > 0
    assert len(server.requests) > 1


def test_a_load_with_an_error_does_not_hold(server: Any) -> None:
    def refuse_the_third(number: int) -> None:
        if number == 3:
            raise errors.InternalError("planted")

    server.on_request = refuse_the_third
    load = open_load(server.address, REQUESTS, 100.0, 0.0, 0.3, seed=1)
    assert load.failed == 1
    assert not load.holds(1e6)


def test_a_load_without_answers_does_not_hold() -> None:
    assert not Answered(None, None, 0.0, 0).holds(1e6)


def test_a_server_that_ends_is_reported_with_its_last_word() -> None:
    command = [sys.executable, "-c", "import sys; print('first'); sys.exit('no such bundle')"]
    with pytest.raises(ServerError, match="exit code 1: no such bundle"), running(command):
        pytest.fail("it is not serving")
