"""Lines of standard input for a command that works on many at a time, here or by calls of a server."""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final, NamedTuple, TypeVar

import grpc
from tqdm import tqdm

from dragoman.errors import AnswerTooLargeError, DragomanError, InvalidRequestError, TextFailedError, UnrecognizedError

EXIT_SOME_FAILED: Final = 1
CALL_TIMEOUT_S: Final = 600.0  # of one chunk, the waiting for a busy server included

# What of standard input is worked on together; one line may be longer, and is then alone.
_CHUNK_LINES: Final = 512
_CHUNK_BYTES: Final = 262_144
_BLOCK_BYTES: Final = 1 << 20
_COMPLAINTS: Final = 5  # about lines that are not UTF-8; the others are counted

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


class Chunk(NamedTuple):
    """Some lines of standard input.

    Attributes:
        first: the number of the first of them, from 1.
        lines: without their ends.
    """

    first: int
    lines: list[str]


def each_chunk(command: str, stream: BinaryIO, work: Callable[[Chunk], None]) -> None:
    """Work on lines, many at a time; with a progress bar if it takes long and a terminal watches.

    A terminal that shows the results themselves needs no bar.

    Args:
        command: its name.
        stream: the lines.
        work: is given one chunk after the other.
    """
    watched = sys.stderr.isatty() and not sys.stdout.isatty()
    total = _count_lines(stream) if watched else None
    chunk_lines = 1 if stream.isatty() else _CHUNK_LINES
    with tqdm(total=total, unit="line", delay=2, disable=not watched) as progress:
        for chunk in _chunks(command, stream, chunk_lines):
            work(chunk)
            progress.update(len(chunk.lines))


def as_unicode(arguments: Iterable[str]) -> list[str]:
    """Give texts of the command line: where one is not UTF-8 it holds lone surrogates, which no tokenizer takes."""
    return [os.fsencode(text).decode(errors="replace") for text in arguments]


def in_chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield texts, as many at a time as are worked on together."""
    chunk: list[str] = []
    size_bytes = 0
    for text in texts:
        text_bytes = len(text.encode())
        if chunk and (len(chunk) == _CHUNK_LINES or size_bytes + text_bytes > _CHUNK_BYTES):
            yield chunk
            chunk, size_bytes = [], 0
        chunk.append(text)
        size_bytes += text_bytes
    if chunk:
        yield chunk


def in_calls(
    call: Callable[[list[_Item]], list[_Answer]], items: list[_Item], failed: Callable[[DragomanError], _Answer]
) -> list[_Answer]:
    """Work on items in one call of a server, or in several where they are too many or too much for one.

    Args:
        call: gives an answer for each item.
        items: all of them.
        failed: makes the answer for one item that is too much by itself.

    Raises:
        DragomanError: why a call failed.
    """
    try:
        return call(items)
    except DragomanError as error:
        if not _is_too_much(error):
            raise
        if len(items) == 1:
            return [failed(error)]
        half = len(items) // 2
        return [*in_calls(call, items[:half], failed), *in_calls(call, items[half:], failed)]


def reason(error: DragomanError) -> str:
    """Say what is wrong with one line; a user who gave lines knows no fields of a call."""
    return "; ".join(violation.description for violation in error.violations) or error.message


def complain(command: str, message: str) -> None:
    """Write a line on standard error, above the progress bar."""
    tqdm.write(f"dragoman {command}: {message}", file=sys.stderr)


def _is_too_much(error: DragomanError) -> bool:
    """Tell whether a call of fewer texts, or of smaller ones, would not have failed."""
    if isinstance(error, UnrecognizedError):  # by gRPC itself: a message over its limit
        return error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    if isinstance(error, AnswerTooLargeError | TextFailedError):
        return True
    names_texts = any(violation.field in ("contents", "pairs") for violation in error.violations)
    return isinstance(error, InvalidRequestError) and (names_texts or "max_request_bytes" in error.metadata)


def _count_lines(stream: BinaryIO) -> int | None:
    """Count the lines of a file ahead; None where that cannot be known."""
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return None
    start, count, block = stream.tell(), 0, b""
    while more := stream.read(_BLOCK_BYTES):
        block = more
        count += block.count(b"\n")
    stream.seek(start)
    return count + (not block.endswith(b"\n") and bool(block))


def _chunks(command: str, stream: Iterable[bytes], count: int) -> Iterator[Chunk]:
    """Yield lines: at most `count` at a time, and at most `_CHUNK_BYTES` where there are several."""
    chunk, size_bytes, not_utf8 = Chunk(1, []), 0, 0
    for number, line in enumerate(stream, start=1):
        if chunk.lines and size_bytes + len(line) > _CHUNK_BYTES:
            yield chunk
            chunk, size_bytes = Chunk(number, []), 0
        text, good = _decoded(line.removesuffix(b"\n"))
        not_utf8 += not good
        if not good and not_utf8 <= _COMPLAINTS:
            complain(command, f"line {number} is not UTF-8; U+FFFD stands for bad bytes")
        chunk.lines.append(text)
        size_bytes += len(line)
        if len(chunk.lines) == count:  # at once: on a terminal somebody waits for the answer to this line
            yield chunk
            chunk, size_bytes = Chunk(number + 1, []), 0
    if chunk.lines:
        yield chunk
    if not_utf8 > _COMPLAINTS:
        complain(command, f"{not_utf8} lines are not UTF-8, the first {_COMPLAINTS} of them are named above")


def _decoded(line: bytes) -> tuple[str, bool]:
    """Read a line, and tell whether it was good."""
    try:
        return line.decode(), True
    except UnicodeDecodeError:
        return line.decode(errors="replace"), False
