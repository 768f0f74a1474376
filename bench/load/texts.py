"""The texts that a load test sends: read from a file, packed into requests that are ready to send."""

import lzma
import zlib
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import DataError
from dragoman.v1 import translation_pb2
from model.corpus import OPENERS


@dataclass(frozen=True)
class DataFile:
    """The texts of a data file."""

    texts: list[str]
    broken_lines: list[int]  # the numbers, from 1, of the lines that hold no text or are not valid UTF-8


def read_data_file(path: Path) -> DataFile:
    """Read a file of one text a line, or of `source<TAB>target` lines, of which it takes the source.

    A file is of the second kind when its name says `.tsv`, or when its first line has a tab; then a line
    without a tab is broken. The endings `.gz` and `.xz` are decompressed. A DataError says why there is no text.
    """
    try:
        with OPENERS.get(path.suffix, open)(path, "rb") as file:  # type: ignore[operator]
            lines = [line.rstrip(b"\r\n") for line in file]
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    lines[:1] = [line.removeprefix(b"\xef\xbb\xbf") for line in lines[:1]]
    is_tsv = ".tsv" in path.suffixes or b"\t" in b"".join(lines[:1])
    texts = [_source(line, is_tsv) for line in lines]
    data = DataFile(
        texts=[text for text in texts if text is not None],
        broken_lines=[number for number, text in enumerate(texts, 1) if text is None],
    )
    if not data.texts:
        if is_tsv and lines and not any(b"\t" in line for line in lines):
            raise DataError(f"no line of {path} has a tab; lines of text alone need another suffix than .tsv")
        raise DataError(f"no line of {path} holds a text")
    return data


def _source(line: bytes, is_tsv: bool) -> str | None:
    """Return the text of a line, or None when the line is broken."""
    source, tab, _ = line.partition(b"\t") if is_tsv else (line, b"\t", b"")
    if not tab or not source.strip():
        return None
    try:
        return source.decode()
    except UnicodeDecodeError:
        return None


def serialize_requests(
    texts: list[str], texts_per_request: int, template: translation_pb2.TranslateTextRequest
) -> list[bytes]:
    """Pack all texts, in order, into as few requests as hold them, once, so that sending one costs no Python later.

    The last request is filled up from the beginning.
    """
    head = template.SerializeToString()
    starts = range(0, len(texts), texts_per_request)
    return [head + _contents(texts, start, texts_per_request) for start in starts]


def _contents(texts: list[str], start: int, count: int) -> bytes:
    """Serialize the field `contents` alone: serialized messages that are joined are one merged message."""
    contents = [texts[index % len(texts)] for index in range(start, start + count)]
    return translation_pb2.TranslateTextRequest(contents=contents).SerializeToString()
