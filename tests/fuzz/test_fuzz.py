"""A small part of `make fuzz`, for every run of the tests."""

import random
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import http
from tests.fuzz.calls import draw
from tests.fuzz.rest import check_at_rest
from tests.fuzz.sender import sending
from tests.fuzz.wire import attack
from tests.server_process import BUNDLE, ServerProcess


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    if not (BUNDLE / "bundle.json").is_file():
        pytest.skip("models/en-de/bundle is not there")
    server = ServerProcess(("--max-target-factor=0.5", "--max-target-offset=4", "--http-address=127.0.0.1:0"))
    try:
        server.wait_until_serving()
        yield server
        check_at_rest(server)
        server.signal(signal.SIGTERM)
        assert server.exit_code() == 0
    finally:
        server.close()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**64 - 1), st.integers(1, 40))
def test_odd_calls_end_as_they_should(server: ServerProcess, seed: int, count: int) -> None:
    source = random.Random(seed)
    with sending(server.address, 1) as sender, ThreadPoolExecutor(count) as pool:
        list(pool.map(sender.send, [draw(source) for _ in range(count)]))


def test_odd_connections_cost_nobody_else_an_answer(server: ServerProcess) -> None:
    assert attack(server, seed=1, connections=120)


def test_odd_connections_over_http_end_as_they_should(server: ServerProcess) -> None:
    found = http.attack(server, seed=1, connections=120)
    assert found.probes
    assert len({kind for kind, _ in found.outcomes}) > 10
