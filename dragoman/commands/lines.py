"""Lines of standard input, in chunks, for a command that works in this process or by calls of a server."""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final, NamedTuple, TypeVar

import grpc
from tqdm import tqdm

from dragoman.errors import AnswerTooLargeError, DragomanError, InvalidRequestError, TextFailedError, UnrecognizedError

EXIT_SOME_FAILED: Final = 1
CALL_TIMEOUT_S: Final = 600.0  # of one chunk, with the time spent waiting for a busy server

# The limits of a chunk; a longer line is a chunk of its own.
_CHUNK_LINES: Final = 512
_CHUNK_BYTES: Final = 262_144
_BLOCK_BYTES: Final = 1 << 20
_COMPLAINTS: Final = 5  # printed for texts that are not UTF-8; further ones are only counted

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


class Chunk(NamedTuple):
    """Consecutive lines of standard input.

    Attributes:
        first: the number of the first line, from 1.
        lines: the lines, without their line ends.
    """

    first: int
    lines: list[str]


class _Decoder:
    """Decodes texts, and names those that are not UTF-8 on standard error.

    Args:
        command: the name of the command.
        unit: the name of a text in messages, such as "line".
    """

    def __init__(self, command: str, unit: str) -> None:
        self._command = command
        self._unit = unit
        self._bad = 0

    def decoded(self, number: int, text: bytes) -> str:
        """Decode a text; U+FFFD stands for bad bytes."""
        try:
            return text.decode()
        except UnicodeDecodeError:
            self._bad += 1
            if self._bad <= _COMPLAINTS:
                complain(self._command, f"{self._unit} {number} is not UTF-8; U+FFFD stands for bad bytes")
            return text.decode(errors="replace")

    def tell_count(self) -> None:
        """Print the number of bad texts, if not all were named."""
        if self._bad > _COMPLAINTS:
            named = f"the first {_COMPLAINTS} of them are named above"
            complain(self._command, f"{self._bad} {self._unit}s are not UTF-8, {named}")


def each_chunk(command: str, stream: BinaryIO, work: Callable[[Chunk], None]) -> None:
    """Process lines in chunks; shows a progress bar if this takes long and standard error is a terminal.

    No bar is shown if standard output is a terminal too, since the results appear there.

    Args:
        command: the name of the command.
        stream: the input.
        work: called with one chunk after the other.
    """
    watched = sys.stderr.isatty() and not sys.stdout.isatty()
    total = _count_lines(stream) if watched else None
    chunk_lines = 1 if stream.isatty() else _CHUNK_LINES
    with tqdm(total=total, unit="line", delay=2, disable=not watched) as progress:
        for chunk in _chunks(command, stream, chunk_lines):
            work(chunk)
            progress.update(len(chunk.lines))


def as_unicode(command: str, arguments: Iterable[str]) -> list[str]:
    """Make valid Unicode of command-line texts: bytes that are not UTF-8, lone surrogates there, become U+FFFD."""
    decoder = _Decoder(command, "text")
    texts = [decoder.decoded(number, os.fsencode(text)) for number, text in enumerate(arguments, start=1)]
    decoder.tell_count()
    return texts


def in_chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the texts in chunks, by the same limits as lines."""
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
    """Call a server for some items; halve the call and repeat when the items are too many or too large for it.

    Args:
        call: returns an answer for each item.
        items: the items.
        failed: makes the answer for a single item that is too large by itself.

    Raises:
        DragomanError: a call failed for another reason.
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
    """Describe the error of one line without field names, which a user of lines does not know."""
    return "; ".join(violation.description for violation in error.violations) or error.message


def complain(command: str, message: str) -> None:
    """Write a line on standard error, above the progress bar."""
    tqdm.write(f"dragoman {command}: {message}", file=sys.stderr)


def _is_too_much(error: DragomanError) -> bool:
    """Tell whether a call with fewer or smaller texts could succeed."""
    if isinstance(error, UnrecognizedError):  # made by gRPC itself: a message over its size limit
        return error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    if isinstance(error, AnswerTooLargeError | TextFailedError):
        return True
    names_texts = any(violation.field in ("contents", "pairs") for violation in error.violations)
    return isinstance(error, InvalidRequestError) and (names_texts or "max_request_bytes" in error.metadata)


def _count_lines(stream: BinaryIO) -> int | None:
    """Count the lines of a regular file in advance; None for other streams."""
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        return None
    start, count, block = stream.tell(), 0, b""
    while more := stream.read(_BLOCK_BYTES):
        block = more
        count += block.count(b"\n")
    stream.seek(start)
    return count + (not block.endswith(b"\n") and bool(block))


def _chunks(command: str, stream: Iterable[bytes], count: int) -> Iterator[Chunk]:
    """Yield chunks of at most `count` lines, and of at most `_CHUNK_BYTES` unless a chunk is one line."""
    chunk, size_bytes, decoder = Chunk(1, []), 0, _Decoder(command, "line")
    for number, line in enumerate(_named(stream), start=1):
        if chunk.lines and size_bytes + len(line) > _CHUNK_BYTES:
            yield chunk
            chunk, size_bytes = Chunk(number, []), 0
        chunk.lines.append(decoder.decoded(number, line.removesuffix(b"\n")))
        size_bytes += len(line)
        if len(chunk.lines) == count:  # a full chunk is yielded at once: on a terminal the user waits for its answer
            yield chunk
            chunk, size_bytes = Chunk(number + 1, []), 0
    if chunk.lines:
        yield chunk
    decoder.tell_count()


def _named(stream: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines; an error of the stream, such as that it is closed, names standard input."""
    try:
        yield from stream
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard input") from error
