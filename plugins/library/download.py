"""Downloads: an interrupted transfer is continued where it ended, also by a later run."""

import gzip
import hashlib
import http.client
import re
import socket
import time
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from typing import Final

from tqdm import tqdm

from dragoman.errors import DataError
from service.settings import WEB_HOST

TIMEOUT_S: Final = 30.0  # the longest time without data
_TRIES: Final = 5  # in a row without progress
PAUSE_S: Final = 1.0  # before the second try; doubled each time
_BLOCK_BYTES: Final = 1 << 20
_PARTIAL: Final = 206
_BEYOND_THE_END: Final = 416
_FIRST_RETRIED: Final = 500


def read(url: str) -> bytes:
    """Read a small file.

    Raises:
        DataError: the download failed; the message says why.
    """
    for number in range(_TRIES):
        try:
            with _open(url) as answer:
                content: bytes = answer.read()
                return content
        except (OSError, http.client.HTTPException) as error:
            _pause(url, error, number)
    raise AssertionError("the last try raises")


def fetch(url: str, file: Path) -> None:
    """Download a large file, continuing an earlier transfer.

    Args:
        url: the address of a file that does not change.
        file: the local file; it appears when it is complete.

    Raises:
        DataError: the download failed; the message says why.
        OSError: the file cannot be written.
    """
    part = file.with_name(file.name + ".part")
    number = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            _transfer(url, part, before)
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
            number = 0 if part.exists() and part.stat().st_size > before else number
            _pause(url, error, number)
            number += 1
        else:
            part.replace(file)
            return


def unpack(file: Path, out: Path) -> str:
    """Unpack a gzip file; returns the SHA-256 of the content, in hex.

    Raises:
        DataError: the file is damaged.
    """
    digest = hashlib.sha256()
    try:
        with gzip.open(file) as packed, out.open("wb") as unpacked:
            while block := packed.read(_BLOCK_BYTES):
                digest.update(block)
                unpacked.write(block)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{file.name}: is damaged: {error}") from error
    return digest.hexdigest()


def _open(url: str, **headers: str) -> http.client.HTTPResponse:
    """Ask for a file.

    Raises:
        DataError: it is no URL of the web; urllib.request would also open local files.
    """
    if not re.fullmatch(WEB_HOST + "/[!-~]*", url):
        raise DataError(f"{url}: must be a URL that begins with http:// or https:// and a host")
    try:
        request = urllib.request.Request(url, headers=headers)
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except (ValueError, OverflowError) as error:  # of a host in brackets, a port, or where it sends us
        raise DataError(f"{url}: cannot be fetched: {error}") from error
    return answer


def _transfer(url: str, part: Path, start: int) -> None:
    """Append the missing rest to a file.

    Raises:
        http.client.IncompleteRead: the connection broke.
    """
    try:
        # Without gzip, a server that stores compressed files would decompress them.
        answer = _open(url, **{"Accept-Encoding": "gzip", "Range": f"bytes={start}-"})
    except urllib.error.HTTPError as error:
        if error.code == _BEYOND_THE_END and start:  # the local part is complete, or belongs to another file
            part.unlink()
            raise ConnectionError("the file is shorter than what was there of it") from error
        raise
    with answer:
        goes_on = answer.status == _PARTIAL
        size = int(answer.headers.get("Content-Length", 0)) + (start if goes_on else 0)
        with (
            part.open("ab" if goes_on else "wb") as out,
            tqdm(
                total=size, initial=start if goes_on else 0, desc=part.stem, unit="B", unit_scale=True, disable=None
            ) as bar,
        ):
            while block := answer.read(_BLOCK_BYTES):
                out.write(block)
                bar.update(len(block))
    if size and part.stat().st_size < size:  # a block-wise read ends without an error when the connection ends
        raise http.client.IncompleteRead(b"", size - part.stat().st_size)


def _pause(url: str, error: Exception, number: int) -> None:
    """Wait before another try; raises DataError if another try would not help."""
    status = error.code if isinstance(error, urllib.error.HTTPError) else 0
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    is_final = 0 < status < _FIRST_RETRIED or isinstance(reason, socket.gaierror | ConnectionRefusedError)
    if is_final or number == _TRIES - 1:
        why = f"{status} {reason}" if status else getattr(reason, "strerror", None) or reason or type(error).__name__
        raise DataError(f"{url}: cannot be fetched: {why}") from error
    time.sleep(PAUSE_S * 2**number)
