"""TLS for calls: certificate, key and authorities from files, checked before use; new connections get the newest."""

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

from service.metrics import Metrics
from service.settings import Settings, SettingsError
from service.watched_files import WatchedFiles

Certificates = WatchedFiles[Any]  # of a grpc.ServerCertificateConfiguration, which has no types


def certificates(settings: Settings, metrics: Metrics) -> Certificates | None:
    """Read the files of the settings; None where calls come in plain text.

    Raises:
        SettingsError: a file cannot be read, or is wrong, or does not match the others.
    """
    if not settings.tls_certificate:
        return None
    paths = [Path(settings.tls_certificate), Path(settings.tls_key)]
    if settings.tls_client_ca:
        paths.append(Path(settings.tls_client_ca))

    def make(contents: Sequence[bytes]) -> Any:
        _check_pair(*paths[:2])
        for path, content in zip(paths[2:], contents[2:], strict=True):
            _check_authorities(path, content)
        certificate, key, *authorities = contents
        return grpc.ssl_server_certificate_configuration([(key, certificate)], authorities[0] if authorities else None)

    return WatchedFiles("tls", paths, make, metrics)


def credentials(certificates: Certificates, *, mutual: bool) -> Any:
    """Make credentials of a server that asks for the newest certificate before each handshake.

    Args:
        certificates: of the server.
        mutual: whether callers must have a certificate of one of the authorities.

    Returns:
        grpc.ServerCredentials.
    """
    given = certificates.value

    def newest() -> Any:
        """Give a configuration where it is new to gRPC, which sets up its TLS anew for each that it is given."""
        nonlocal given
        if certificates.value is given:
            return None
        given = certificates.value
        return given

    return grpc.dynamic_ssl_server_credentials(given, newest, require_client_authentication=mutual)


def _check_pair(certificate: Path, key: Path) -> None:
    """Let OpenSSL judge what gRPC would only fail to use.

    Raises:
        SettingsError: the files are no certificate, or no key, or not of each other.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a password function OpenSSL would ask for one on the terminal.
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or "not PEM"
        raise SettingsError(f"{certificate} and {key} are not a certificate and its key: {why}") from error


def _check_authorities(path: Path, content: bytes) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=content.decode("ascii"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path}: no certificates of authorities in PEM") from error
