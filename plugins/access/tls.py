"""TLS for calls: certificate, key and authorities from files, checked before use; new connections get the newest."""

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc

from dragoman import pem
from plugins.access.watched_files import ReloadableFiles
from service.settings import Settings, SettingsError
from service.telemetry.metrics import Metrics

_WITHOUT_AUTHORITIES: Final = 2  # files: the certificate and its key
_FLAGS: Final = ("--tls-certificate", "--tls-key", "--tls-client-ca")


class Identity(NamedTuple):
    """What the files of a server make.

    Attributes:
        for_grpc: a grpc.ServerCertificateConfiguration.
        for_http: a context of Python's own TLS.
    """

    for_grpc: Any
    for_http: ssl.SSLContext


class Certificates(ReloadableFiles[Identity]):
    """The certificates of a server; with the file of authorities, callers need one of theirs."""

    def for_grpc(self) -> Any:
        """Make grpc.ServerCredentials, which look for newer certificates before each handshake."""
        given = self.value.for_grpc

        def newest() -> Any:
            """Give a configuration where it is new to gRPC, which sets up its TLS anew for each that it is given."""
            nonlocal given
            if self.value.for_grpc is given:
                return None
            given = self.value.for_grpc
            return given

        mutual = len(self._paths) > _WITHOUT_AUTHORITIES
        return grpc.dynamic_ssl_server_credentials(given, newest, require_client_authentication=mutual)

    def for_http(self) -> ssl.SSLContext:
        """Give the context of a new connection."""
        return self.value.for_http


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

    def make(contents: Sequence[bytes]) -> Identity:
        try:
            pem.check_pair(*paths[:2])
            for path, content in zip(paths[2:], contents[2:], strict=True):
                pem.check_authorities(path, content)
            certificate, key, *authorities = contents
            context = _context(paths, authorities)
        except OSError as error:
            raise SettingsError(str(error)) from error
        given = grpc.ssl_server_certificate_configuration([(key, certificate)], authorities[0] if authorities else None)
        return Identity(given, context)

    try:
        return Certificates("tls", paths, make, metrics)
    except SettingsError as error:
        raise SettingsError(f"{', '.join(_FLAGS[: len(paths)])}: {error}") from error


def _context(paths: Sequence[Path], authorities: Sequence[bytes]) -> ssl.SSLContext:
    """Make the context of the HTTP port; with authorities, callers must have a certificate of one of them."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(paths[0], paths[1], password=lambda: b"")
    context.set_alpn_protocols(["http/1.1"])
    if authorities:
        context.load_verify_locations(cadata=authorities[0].decode("ascii"))
        context.verify_mode = ssl.CERT_REQUIRED
    return context
