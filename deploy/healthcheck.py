"""HEALTHCHECK of the images: exit 0 when the server in this container answers SERVING, else 1 and one line."""

import os
import socket
import ssl
import sys
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

TIMEOUT_S = 5.0


def channel(host: str, port: int) -> grpc.Channel:
    """Connect as the settings of the server ask: over TLS if it has a certificate.

    The server is to be the one with this very certificate, whoever it is made out for. To a server that wants
    certificates of its callers this one shows the same: the authorities for callers must be its own for that.
    """
    address = f"{host}:{port}"
    certificate = os.environ.get("DRAGOMAN_TLS_CERTIFICATE")
    if not certificate:
        return grpc.insecure_channel(address)
    key = os.environ["DRAGOMAN_TLS_KEY"]
    pem = Path(certificate).read_bytes()
    credentials = grpc.ssl_channel_credentials(pem, Path(key).read_bytes(), pem)
    return grpc.secure_channel(
        address, credentials, [("grpc.ssl_target_name_override", _name(host, port, certificate, key))]
    )


def _name(host: str, port: int, certificate: str, key: str) -> str:
    """Ask the server for a name in its certificate, which must be the one in the file."""
    context = ssl.create_default_context(cafile=certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # it need not be an authority to be trusted
    context.load_cert_chain(certificate, key)
    with socket.create_connection((host, port), TIMEOUT_S) as connection, context.wrap_socket(connection) as tls:
        names = (tls.getpeercert() or {}).get("subjectAltName", ())
    return str(names[0][1]).replace("*", "any")  # type: ignore[index, misc]


def status(host: str, port: int) -> str:
    """Ask grpc.health.v1 for the state of the whole server: its name, or what the failure was."""
    try:
        with channel(host, port) as open_channel:
            stub = health_pb2_grpc.HealthStub(open_channel)
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        return str(error.code())
    except OSError as error:
        return f"no TLS: {error}"
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


def main() -> int:
    """Check the port that ``DRAGOMAN_ADDRESS`` names, on this host."""
    port = int(os.environ.get("DRAGOMAN_ADDRESS", "127.0.0.1:50051").rpartition(":")[2])
    state = status("127.0.0.1", port)
    print(state)
    return 0 if state == "SERVING" else 1


if __name__ == "__main__":
    sys.exit(main())
