"""Servers that stop or die under load and come back: clients that try again lose nothing."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman import LoadingError, ServerUnavailableError
from tests.e2e.steady_load import (
    CALLERS,
    LOOK_S,
    OFF,
    SteadyLoad,
    Translate,
    expected_of,
    grpc_caller,
    until_served_by,
)


def test_a_rolling_restart_loses_nothing(launch) -> None:
    servers = [launch("--shutdown-delay-s=0.5", *OFF) for _ in range(2)]
    for server in servers:
        server.wait_until_serving()
    target = "ipv4:" + ",".join(server.address for server in servers)
    with SteadyLoad(expected_of(servers[0]), lambda: grpc_caller(target)) as load:
        for place, server in enumerate(servers):
            until_served_by(server)
            server.signal(signal.SIGTERM)
            assert server.exit_code() == 0
            load.go_on(20)  # the other one serves them all
            servers[place] = launch(f"--address={server.address}", "--shutdown-delay-s=0.5", *OFF)
            servers[place].wait_until_serving()
            until_served_by(servers[place])
        load.go_on(20)
    assert load.wrong == []


def test_a_killed_server_comes_back_and_those_who_try_again_get_everything(launch) -> None:
    server = launch(*OFF)
    server.wait_until_serving()
    address = server.address
    failures: list[ServerUnavailableError] = []

    @contextmanager
    def stubborn_caller() -> Iterator[Translate]:
        with grpc_caller(address) as translate_once:

            def translate(text: str) -> str:
                while True:
                    try:
                        return translate_once(text)
                    except ServerUnavailableError as error:
                        failures.append(error)

            yield translate

    with SteadyLoad(expected_of(server), stubborn_caller) as load:
        for _ in range(2):
            load.go_on(10)
            server.signal(signal.SIGKILL)
            assert server.exit_code() == -signal.SIGKILL
            before = len(failures)
            while len(failures) < before + CALLERS:  # all of its own tries of each caller have failed
                assert load.wrong == []
                time.sleep(LOOK_S)
            server = launch(f"--address={address}", *OFF)
            server.wait_until_serving()
            until_served_by(server)
        load.go_on(10)
    assert load.wrong == []
    # A last try may meet a server that is there again and loads.
    assert {ServerUnavailableError} <= {type(error) for error in failures} <= {ServerUnavailableError, LoadingError}
