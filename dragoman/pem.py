"""PEM files for TLS, checked by OpenSSL first: gRPC would only fail to connect, without a reason."""

import codecs
import ssl
from pathlib import Path
from typing import Final

from dragoman.files import read_regular

_OTHER_KEY: Final = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")  # what OpenSSL calls it
# gRPC skips a line that begins with the mark, where OpenSSL may not.
_MARKED: Final = codecs.BOM_UTF8 + b"-----BEGIN"


def check_pair(certificate: Path, key: Path) -> None:
    """Check that a certificate and its key are usable.

    Raises:
        OSError: a file is no certificate or no key, or the two do not belong together.
    """
    if why := pair_fault(certificate, key):
        raise OSError(f"{certificate} and {key} are not a certificate and its key: {why}")
    for path in (certificate, key):
        _refuse_mark(path, read_regular(path))


def pair_fault(certificate: Path, key: Path) -> str:
    """Tell why OpenSSL cannot use a certificate and its key; an empty string if it can."""
    try:
        # Without this password function OpenSSL would ask on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: b"")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = error.reason if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None)
        return "the key is of another certificate" if reason in _OTHER_KEY else reason or "not PEM"
    return ""


def check_authorities(path: Path, content: bytes) -> None:
    """Check that a file holds CA certificates.

    Args:
        path: the path of the file, for errors.
        content: the content of the file.

    Raises:
        OSError: the file holds no certificate.
    """
    _refuse_mark(path, content)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=text(content))
    except (OSError, ValueError) as error:
        raise OSError(f"{path}: no certificates of authorities in PEM") from error


def text(content: bytes) -> str:
    """Give the content of a PEM file as `ssl` takes it, in ASCII: comments may have any bytes."""
    return content.decode("ascii", "backslashreplace")


def _refuse_mark(path: Path, content: bytes) -> None:
    if _MARKED in content:
        raise OSError(f"{path}: a byte order mark (U+FEFF) before -----BEGIN: save the file without it")
