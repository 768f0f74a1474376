"""What a command needs to be let in by a server: authorities for TLS, an API key; from its flags."""

import argparse
import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import grpc

API_KEY_VARIABLE: Final = "DRAGOMAN_API_KEY"


@dataclass(frozen=True)
class Access:
    """How to reach a server.

    Attributes:
        api_key: sent with every call; None: none.
        tls_ca: PEM file of the authorities that vouch for the server; None: in plain text.
    """

    api_key: str | None = field(default=None, repr=False)
    tls_ca: Path | None = None

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Of every call."""
        return () if self.api_key is None else (("authorization", f"Bearer {self.api_key}"),)

    def credentials(self) -> grpc.ChannelCredentials | None:
        """Of the channel; None in plain text.

        Raises:
            OSError: the file cannot be read, or holds no certificates.
        """
        if self.tls_ca is None:
            return None
        pem = self.tls_ca.read_bytes()
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem.decode("ascii"))
        except (OSError, ValueError) as error:  # gRPC would only say that no server answers
            raise OSError(f"{self.tls_ca}: no certificates of authorities in PEM") from error
        return grpc.ssl_channel_credentials(pem)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags that :func:`of` reads."""
    parser.add_argument(
        "--tls-ca", type=Path, metavar="FILE", help="reach the server over TLS; PEM file of who vouches for it"
    )
    parser.add_argument(
        "--api-key", metavar="KEY", help=f"for a server that wants one; others cannot see it in {API_KEY_VARIABLE}"
    )


def of(parser: argparse.ArgumentParser, options: argparse.Namespace) -> Access:
    """Read the flags, and the key from the environment where there is none among them.

    Raises:
        SystemExit: with 2, after one line on standard error, if no header can hold the key.
    """
    api_key = options.api_key or os.environ.get(API_KEY_VARIABLE) or None
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        parser.error(f"argument --api-key (or {API_KEY_VARIABLE}): must be printable ASCII")
    return Access(api_key, options.tls_ca)
