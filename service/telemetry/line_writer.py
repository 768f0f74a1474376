"""Lines to a file descriptor, written by one thread: logging never blocks and never fails."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from select import PIPE_BUF
from typing import Final

_LIMIT_LINES: Final = 10_000  # that wait; some megabytes at most
_PAUSE_S: Final = 0.05  # after a write: all lines that come meanwhile are written together
_PATIENCE_S: Final = 1.0  # at the end, for a reader that does not read


class LineWriter:
    """Writes lines in order. Lines for which there is no room, or which cannot be written, are dropped and counted.

    A reader that does not read blocks the thread in its write. With a full disk, or after the reader has left, each
    write fails; lines are written again once that is over.
    """

    def __init__(self, descriptor: int, dropped: Callable[[int], None]) -> None:
        """Start the thread.

        Args:
            descriptor: descriptor of an open file, pipe or terminal; stays open.
            dropped: called with the number of lost lines, on any thread.
        """
        self._descriptor = descriptor
        self._dropped = dropped
        self._lines: deque[str] = deque()
        self._torn = False  # whether the last write ended inside a line
        self._arrived = threading.Event()
        self._closing = threading.Event()
        # A daemon: a reader that never reads must not keep the process from its end.
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Have a line written soon; it ends with a newline."""
        if len(self._lines) >= _LIMIT_LINES:
            self._dropped(1)
            return
        self._lines.append(line)
        if not self._arrived.is_set():  # a check is cheaper than `set`
            self._arrived.set()

    def close(self) -> None:
        """Write the waiting lines, as far as the reader takes them in a second."""
        self._closing.set()
        self._arrived.set()
        self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        ending = False
        while not ending:
            self._arrived.wait()
            ending = self._closing.is_set()  # checked first: earlier lines are in the last write
            self._arrived.clear()
            self._flush()
            if not ending:
                self._closing.wait(_PAUSE_S)

    def _flush(self) -> None:
        lines = [self._lines.popleft().encode(errors="backslashreplace") for _ in range(len(self._lines))]
        for data in _joined(lines):
            self._put(data)

    def _put(self, data: bytes) -> None:
        """Write whole lines."""
        if self._torn:
            data = b"\n" + data
        done, view = 0, memoryview(data)
        try:
            while done < len(data):
                done += os.write(self._descriptor, view[done:])
            self._torn = False
        except OSError:
            self._dropped(data.count(b"\n", max(done, int(self._torn))))
            self._torn = data[done - 1 : done] != b"\n" if done else self._torn


def _joined(lines: list[bytes]) -> Iterator[bytes]:
    """Join lines up to the size that a pipe takes at once, so that lines of several processes do not mix."""
    data = b""
    for line in lines:
        if data and len(data) + len(line) >= PIPE_BUF:  # a newline may be put in front
            yield data
            data = b""
        data += line
    if data:
        yield data
