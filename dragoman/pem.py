"""PEM files for TLS, checked by OpenSSL first: gRPC would only fail to connect, without a reason."""

import ssl
from pathlib import Path


def check_pair(certificate: Path, key: Path) -> None:
    """Check that a certificate and its key are usable.

    Raises:
        OSError: a file is no certificate or no key, or the two do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without this password function OpenSSL would ask on the terminal.
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        why = (error.reason if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None)) or "not PEM"
        raise OSError(f"{certificate} and {key} are not a certificate and its key: {why}") from error


def check_authorities(path: Path, content: bytes) -> None:
    """Check that a file holds CA certificates.

    Args:
        path: the path of the file, for errors.
        content: the content of the file.

    Raises:
        OSError: the file holds no certificate.
    """
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=content.decode("ascii"))
    except (OSError, ValueError) as error:
        raise OSError(f"{path}: no certificates of authorities in PEM") from error
