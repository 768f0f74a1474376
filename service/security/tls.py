"""TLS for calls: certificate, key and authorities from files, checked before use; new connections get the newest."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

from dragoman import pem
from service.security.watched_files import ReloadableFiles
from service.settings import Settings, SettingsError
from service.telemetry.metrics import Metrics

Certificates = ReloadableFiles[Any]  # of a grpc.ServerCertificateConfiguration, which has no types


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
        try:
            pem.check_pair(*paths[:2])
            for path, content in zip(paths[2:], contents[2:], strict=True):
                pem.check_authorities(path, content)
        except OSError as error:
            raise SettingsError(str(error)) from error
        certificate, key, *authorities = contents
        return grpc.ssl_server_certificate_configuration([(key, certificate)], authorities[0] if authorities else None)

    return ReloadableFiles("tls", paths, make, metrics)


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
