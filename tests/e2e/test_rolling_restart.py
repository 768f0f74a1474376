"""Servers that stop or die under load and come back: clients that try again lose nothing."""

import signal
import time
from typing import Final

import pytest

from bench.server_process import free_ports
from tests.e2e.steady_load import OFF, SteadyLoad, expected_of, grpc_caller, until_served_by

AWAY_S: Final = 3.0  # several times what the client would try for with a server that it does not know


def test_a_rolling_restart_loses_nothing(serve) -> None:
    ports = free_ports(2)
    servers = [serve(f"--address=127.0.0.1:{port}", "--shutdown-delay-s=0.5", *OFF) for port in ports]
    target = "ipv4:" + ",".join(server.address for server in servers)
    with SteadyLoad(expected_of(servers[0]), lambda: grpc_caller(target)) as load:
        for place, server in enumerate(servers):
            until_served_by(server)
            server.signal(signal.SIGTERM)
            assert server.exit_code() == 0
            load.go_on(20)  # the other one serves them all
            servers[place] = serve(f"--address={server.address}", "--shutdown-delay-s=0.5", *OFF)
            until_served_by(servers[place])
        load.go_on(20)
    assert load.wrong == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_callers_of_one_server_wait_until_it_is_back(serve, number: signal.Signals) -> None:
    server = serve(f"--address=127.0.0.1:{free_ports(1)[0]}", *OFF)
    with SteadyLoad(expected_of(server), lambda: grpc_caller(server.address)) as load:
        load.go_on(10)
        server.signal(number)
        server.exit_code()
        time.sleep(AWAY_S)
        server = serve(f"--address={server.address}", *OFF)
        load.go_on(10)
    assert load.wrong == []
