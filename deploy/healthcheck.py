"""HEALTHCHECK of the images: exit 0 when the server in this container answers SERVING, else 1 and one line.

It reads the settings of the server from the environment. A server that wants certificates of its callers is shown that
of the flags, or without them its own. Where its own is unusable, the server goes on with what its files held before: so
exit code 0 then means that it answers with TLS, whatever its state.
"""

import argparse
import ipaddress
import os
import socket
import ssl
import sys
from pathlib import Path
from typing import NamedTuple

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman import pem

TIMEOUT_S = 5.0


class Pair(NamedTuple):
    """A certificate to show, and its key: PEM files."""

    certificate: Path
    key: Path


def channel(host: str, port: int, pair: Pair | None) -> grpc.Channel:
    """Connect as the settings of the server ask: over TLS if it has a certificate.

    Any certificate is trusted, whoever it is made out for: what listens in this container is the server. Not that of
    the file, which may have been replaced by a broken one since, while the server goes on with the old one.
    """
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if not os.environ.get("DRAGOMAN_TLS_CERTIFICATE"):
        return grpc.insecure_channel(address)
    served, name = _identity(host, port, pair)
    key, certificate = (pair.key.read_bytes(), pair.certificate.read_bytes()) if pair else (None, None)
    credentials = grpc.ssl_channel_credentials(served.encode(), key, certificate)
    return grpc.secure_channel(address, credentials, [("grpc.ssl_target_name_override", name)])


def _identity(host: str, port: int, pair: Pair | None) -> tuple[str, str]:
    """Give the certificate that the server shows, in PEM, and a name in it that gRPC can compare.

    Raises:
        OSError: there is none, or it has expired.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # it need not be an authority to be trusted
    if pair:
        context.load_cert_chain(*pair)
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection((host, port), TIMEOUT_S) as connection, context.wrap_socket(connection) as tls:
        served = ssl.DER_cert_to_PEM_cert(tls.getpeercert(binary_form=True) or b"")
    context.verify_mode = ssl.CERT_REQUIRED  # Python reads the names in a certificate only where it has verified it
    context.load_verify_locations(cadata=served)
    with socket.create_connection((host, port), TIMEOUT_S) as connection, context.wrap_socket(connection) as tls:
        names = (tls.getpeercert() or {}).get("subjectAltName", ())
    for kind, name in names:
        if kind == "DNS":
            return served, str(name).replace("*", "any")
        if kind == "IP Address":
            return served, str(ipaddress.ip_address(str(name).strip()))
    raise OSError("the certificate is made out for no host: its subjectAltName has no DNS name and no IP address")


def _listening(address: str) -> tuple[str, int]:
    """Give where the address of the server can be reached from this host: a host without brackets, and a port."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    return {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), int(port)


def status(host: str, port: int, pair: Pair | None) -> str:
    """Ask grpc.health.v1 for the state of the whole server: its name, or what the failure was."""
    try:
        with channel(host, port, pair) as open_channel:
            stub = health_pb2_grpc.HealthStub(open_channel)
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        return str(error.code())
    except OSError as error:
        return f"no TLS: {error}"
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


def _answers(host: str, port: int) -> str:
    """Shake hands without a certificate: an empty string if the server does so, or what the failure was.

    With TLS 1.3 a client has ended its handshake before the server looks at the client's certificate.
    """
    try:
        _identity(host, port, None)
    except OSError as error:
        return f"no TLS: {error}"
    return ""


def main() -> int:
    """Check the server at ``DRAGOMAN_ADDRESS``."""
    parser = argparse.ArgumentParser("healthcheck.py", description="Ask the server in this container how it is.")
    own = {name: os.environ.get(f"DRAGOMAN_TLS_{name}") for name in ("CERTIFICATE", "KEY")}
    what = "to show to a server that wants one (%(default)s)"
    parser.add_argument(
        "--tls-cert", default=own["CERTIFICATE"], metavar="FILE", help=f"PEM file of a certificate {what}"
    )
    parser.add_argument("--tls-key", default=own["KEY"], metavar="FILE", help="PEM file of its key (%(default)s)")
    options = parser.parse_args()
    mutual = os.environ.get("DRAGOMAN_TLS_CLIENT_CA")
    if mutual and not (options.tls_cert and options.tls_key):
        print(
            "DRAGOMAN_TLS_CLIENT_CA needs a certificate and its key to show: --tls-cert and --tls-key, or the server's"
        )
        return 1
    pair = Pair(Path(options.tls_cert), Path(options.tls_key)) if mutual else None
    host, port = _listening(os.environ.get("DRAGOMAN_ADDRESS", "127.0.0.1:50051"))
    if pair and (why := pem.pair_fault(*pair)):
        fault = f"{pair.certificate} and {pair.key}: {why}"
        is_own = (options.tls_cert, options.tls_key) == (own["CERTIFICATE"], own["KEY"])
        failure = _answers(host, port) if is_own else f"no TLS: {fault}"
        print(failure or f"answers with TLS; its state is unknown without a certificate to show: {fault}")
        return 1 if failure else 0
    state = status(host, port, pair)
    print(state)
    return 0 if state == "SERVING" else 1


if __name__ == "__main__":
    sys.exit(main())
