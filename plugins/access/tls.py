"""TLS for calls: certificate, key and CAs from files, checked before use; new connections use the newest."""

import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc

from dragoman import pem
from plugins.access.watched_files import ReloadableFiles
from service.settings import Settings, SettingsError
from service.telemetry.metrics import Metrics

_WITHOUT_AUTHORITIES: Final = 2  # the number of files without client authentication: the certificate and its key
_FLAGS: Final = ("--tls-certificate", "--tls-key", "--tls-client-ca")


class Identity(NamedTuple):
    """The TLS objects made from the files of a server.

    Attributes:
        for_grpc: a grpc.ServerCertificateConfiguration.
        for_http: an ssl.SSLContext.
    """

    for_grpc: Any
    for_http: ssl.SSLContext


class Certificates(ReloadableFiles[Identity]):
    """The certificates of a server; with a file of CA certificates, callers need a certificate of one of them."""

    def for_grpc(self) -> Any:
        """Make grpc.ServerCredentials, which check for newer certificates before each handshake."""
        given = self.value.for_grpc

        def newest() -> Any:
            """Give the configuration only if it is new, because gRPC sets up TLS again for each one that it gets."""
            nonlocal given
            if self.value.for_grpc is given:
                return None
            given = self.value.for_grpc
            return given

        mutual = len(self._paths) > _WITHOUT_AUTHORITIES
        return grpc.dynamic_ssl_server_credentials(given, newest, require_client_authentication=mutual)

    def for_http(self) -> ssl.SSLContext:
        """Give the context for a new connection."""
        return self.value.for_http


def certificates(settings: Settings, metrics: Metrics) -> Certificates | None:
    """Read the files of the settings; None if calls use plain text.

    Raises:
        SettingsError: a file is unreadable or invalid, or does not match the others.
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
            _check_with_grpc(paths, contents)
        except OSError as error:
            raise SettingsError(str(error)) from error
        given = grpc.ssl_server_certificate_configuration([(key, certificate)], authorities[0] if authorities else None)
        return Identity(given, context)

    try:
        return Certificates("tls", paths, make, metrics)
    except SettingsError as error:
        raise SettingsError(f"{', '.join(_FLAGS[: len(paths)])}: {error}") from error


def _context(paths: Sequence[Path], authorities: Sequence[bytes]) -> ssl.SSLContext:
    """Make the context of the HTTP port; with CA certificates, callers must have a certificate of one of them."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(paths[0], paths[1], password=lambda: b"")
    context.set_alpn_protocols(["http/1.1"])
    if authorities:
        context.load_verify_locations(cadata=pem.text(authorities[0]))
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as gRPC: any certificate of the file is an authority
    return context


def _check_with_grpc(paths: Sequence[Path], contents: Sequence[bytes]) -> None:
    """Check that gRPC can use the files: its BoringSSL knows fewer kinds of keys and certificates than OpenSSL.

    Raises:
        OSError: gRPC cannot use them.
    """
    certificate, key, *authorities = contents
    known = authorities[0] if authorities else None
    credentials = grpc.ssl_server_credentials([(key, certificate)], known, require_client_auth=known is not None)
    server = grpc.server(ThreadPoolExecutor(1))
    try:
        server.add_secure_port("127.0.0.1:0", credentials)  # nothing but a port makes gRPC read them
    except RuntimeError as error:
        names = ", ".join(str(path) for path in paths)
        raise OSError(f"{names}: gRPC cannot use them: it knows RSA, P-256, P-384, P-521 and Ed25519") from error
    finally:
        server.start()  # a server that never started would keep its port and memory
        server.stop(None).wait()
