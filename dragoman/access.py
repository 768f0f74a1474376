"""Access to a server: certificates for TLS, an API key, and the flags of a command for both."""

import argparse
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import grpc

from dragoman import pem
from dragoman.files import read_regular

API_KEY_VARIABLE: Final = "DRAGOMAN_API_KEY"


@dataclass(frozen=True)
class Access:
    """How to reach a server.

    Attributes:
        api_key: is sent with every call; None: no key.
        tls_ca: CA certificate file (PEM) that verifies the server; None: the channel is plain text.
        tls_cert: PEM file with the client's certificate and its chain, for a server that asks for one; needs `tls_ca`.
            None: no certificate.
        tls_key: PEM file with the key of `tls_cert`; None: no key.
    """

    api_key: str | None = field(default=None, repr=False)
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of every call."""
        return () if self.api_key is None else (("authorization", f"Bearer {self.api_key}"),)

    def credentials(self) -> grpc.ChannelCredentials | None:
        """Make the credentials of the channel; None: the channel is plain text.

        Raises:
            OSError: a file is unreadable, or has the wrong content.
        """
        if self.tls_ca is None:
            return None
        authorities = read_regular(self.tls_ca)
        pem.check_authorities(self.tls_ca, authorities)
        if self.tls_cert is None or self.tls_key is None:
            return grpc.ssl_channel_credentials(authorities)
        key, certificate = read_regular(self.tls_key), read_regular(self.tls_cert)
        pem.check_pair(self.tls_cert, self.tls_key)
        return grpc.ssl_channel_credentials(authorities, key, certificate)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that :func:`of` reads."""
    add = parser.add_argument
    add("--tls-ca", type=Path, metavar="FILE", help="CA certificate file (PEM) that verifies the server; enables TLS")
    add("--tls-cert", type=Path, metavar="FILE", help="client certificate file (PEM), for a server with mTLS")
    add("--tls-key", type=Path, metavar="FILE", help="private key file (PEM) of --tls-cert")
    add(
        "--api-key",
        metavar="KEY",
        help=f"API key; {API_KEY_VARIABLE} hides it from other users",
    )


def given(options: argparse.Namespace) -> str | None:
    """Give the first of these flags that is set; None if none is set."""
    names = ("tls_ca", "tls_cert", "tls_key", "api_key")
    return next((f"--{name.replace('_', '-')}" for name in names if getattr(options, name)), None)


def of(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Access:
    """Read the flags; without `--api-key`, read the key from the environment.

    Raises:
        SystemExit: with 2, after one line on standard error, if a flag is missing, or no header can hold the key.
    """
    for flag, value, needed, other in (
        ("--tls-cert", options.tls_cert, "--tls-key", options.tls_key),
        ("--tls-key", options.tls_key, "--tls-cert", options.tls_cert),
        ("--tls-cert", options.tls_cert, "--tls-ca", options.tls_ca),
    ):
        if value and not other:
            parser.error(f"argument {flag}: needs {needed}")
    api_key = options.api_key or os.environ.get(API_KEY_VARIABLE) or None
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        parser.error(f"argument --api-key (or {API_KEY_VARIABLE}): must be printable ASCII")
    return Access(api_key, options.tls_ca, options.tls_cert, options.tls_key)
