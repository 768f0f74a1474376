"""Clients connect again after a while, so that they find servers that were added, and lose nothing by it."""

import threading
import time
from collections.abc import Iterator

import pytest

from dragoman import Client
from tests.e2e.relay import Relay
from tests.server_process import PATIENCE_S, ServerProcess, serving


@pytest.fixture(scope="module")
def impatient(_bundle: None) -> Iterator[ServerProcess]:
    with serving("--max-connection-age-s=0.5") as server:
        yield server


def test_a_client_connects_again_after_a_while_and_loses_no_call(impatient: ServerProcess) -> None:
    with Relay(impatient.address, "127.0.0.1") as relay, Client(relay.address, timeout_s=PATIENCE_S) as client:
        give_up_s = time.monotonic() + PATIENCE_S
        while relay.connections < 4:
            assert client.translate("Good morning.", model="en-de").text == "Guten Morgen."
            assert time.monotonic() < give_up_s


def test_a_call_that_runs_when_its_connection_is_too_old_ends_well(impatient: ServerProcess) -> None:
    reconnected = threading.Event()

    def texts() -> Iterator[str]:
        yield "Good morning."
        assert reconnected.wait(PATIENCE_S)
        yield "Good morning."

    with Relay(impatient.address, "127.0.0.1") as relay, Client(relay.address, timeout_s=PATIENCE_S) as client:
        answers = client.translate_many(texts(), model="en-de")
        assert next(answers).translation.text == "Guten Morgen."
        give_up_s = time.monotonic() + PATIENCE_S
        while relay.connections < 3:
            client.list_models()
            assert time.monotonic() < give_up_s
        reconnected.set()
        assert [answer.translation.text for answer in answers] == ["Guten Morgen."]


def test_without_an_age_a_client_keeps_its_connection(serve) -> None:
    server = serve("--max-connection-age-s=0")
    with Relay(server.address, "127.0.0.1") as relay, Client(relay.address, timeout_s=PATIENCE_S) as client:
        for _ in range(20):
            client.list_models()
        assert relay.connections == 1
