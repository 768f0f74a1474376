"""PEM files of TLS, checked by OpenSSL before gRPC gets them, which would only fail to connect and not say why."""

import ssl
from pathlib import Path


def check_pair(certificate: Path, key: Path) -> None:
    """Check that a certificate and its key can be used.

    Raises:
        OSError: the files are no certificate, or no key, or not of each other.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a password function OpenSSL would ask for one on the terminal.
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        why = (error.reason if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None)) or "not PEM"
        raise OSError(f"{certificate} and {key} are not a certificate and its key: {why}") from error


def check_authorities(path: Path, content: bytes) -> None:
    """Check that there are certificates of authorities.

    Args:
        path: of the file, for errors.
        content: of the file.

    Raises:
        OSError: there are none.
    """
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=content.decode("ascii"))
    except (OSError, ValueError) as error:
        raise OSError(f"{path}: no certificates of authorities in PEM") from error
