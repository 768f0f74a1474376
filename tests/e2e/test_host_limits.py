"""One host without a key takes all that it can get, and another host is served."""

import socket
import time

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman import Client
from plugins.access import api_keys
from tests.e2e.relay import Relay
from tests.http2 import PREFACE
from tests.server_process import PATIENCE_S, ServerProcess

CONNECTIONS, OF_ONE_HOST = 40, 10


@pytest.fixture
def server(serve, tmp_path) -> ServerProcess:
    keys = tmp_path / "keys.toml"
    keys.write_text(api_keys.line_of("alice", api_keys.entry_of("secret")))
    limits = (f"--max-connections={CONNECTIONS}", f"--max-host-connections={OF_ONE_HOST}")
    return serve(*limits, f"--api-keys={keys}")


def test_one_host_cannot_take_all_connections(server: ServerProcess) -> None:
    host, _, port = server.address.rpartition(":")
    crowd = []
    give_up_s = time.monotonic() + PATIENCE_S
    while server.metric("closed_connections_total") < 2 * CONNECTIONS:
        assert time.monotonic() < give_up_s
        for _ in range(CONNECTIONS):
            crowd.append(socket.create_connection((host, int(port)), timeout=PATIENCE_S))
            crowd[-1].sendall(PREFACE)
        time.sleep(0.05)
    with Relay(server.address, "127.0.0.2") as relay, Client(relay.address, api_key="secret") as client:
        assert client.translate("Good morning.", model="en-de", timeout_s=PATIENCE_S).text == "Guten Morgen."
    for connection in crowd:
        connection.close()
    lines = [line for line in server.log if "hosts that had too many" in line]
    assert lines
    assert len(lines) < 20


def test_a_connection_that_works_is_not_closed_for_new_ones_of_its_host(server: ServerProcess) -> None:
    host, _, port = server.address.rpartition(":")
    with grpc.insecure_channel(server.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S)
        next(watch)
        crowd = [socket.create_connection((host, int(port)), timeout=PATIENCE_S) for _ in range(CONNECTIONS - 5)]
        give_up_s = time.monotonic() + PATIENCE_S
        while server.metric("closed_connections_total") < CONNECTIONS - 5 - OF_ONE_HOST:
            assert time.monotonic() < give_up_s
            time.sleep(0.05)
        assert watch.is_active()
        for connection in crowd:
            connection.close()
        watch.cancel()


def test_calls_without_a_key_are_bounded_by_host(server: ServerProcess) -> None:
    with grpc.insecure_channel(server.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        watches = [stub.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S) for _ in range(OF_ONE_HOST)]
        for watch in watches:
            next(watch)
        with pytest.raises(grpc.RpcError, match="at most 10 calls of health and reflection") as caught:
            next(stub.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert server.metric("rejected_total", reason="OPEN_CALLS_LIMITED") == 1
        with Relay(server.address, "127.0.0.2") as relay, grpc.insecure_channel(relay.address) as other:
            request = health_pb2.HealthCheckRequest()
            assert health_pb2_grpc.HealthStub(other).Check(request, timeout=PATIENCE_S).status
        for watch in watches:
            watch.cancel()
        give_up_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                assert stub.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S).status
                break
            except grpc.RpcError:  # the end of the watches has not come through yet
                assert time.monotonic() < give_up_s
                time.sleep(0.05)
