"""HEALTHCHECK of the images: exit 0 when the server in this container answers SERVING, else 1 and one line."""

import os
import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

TIMEOUT_S = 5.0


def status(address: str) -> str:
    """Ask grpc.health.v1 for the state of the whole server: its name, or the gRPC code of the failure."""
    with grpc.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            return str(error.code())
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


def main() -> int:
    """Check the port that ``DRAGOMAN_ADDRESS`` names, on this host."""
    port = os.environ.get("DRAGOMAN_ADDRESS", "127.0.0.1:50051").rpartition(":")[2]
    state = status(f"127.0.0.1:{port}")
    print(state)
    return 0 if state == "SERVING" else 1


if __name__ == "__main__":
    sys.exit(main())
