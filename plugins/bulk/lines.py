"""Lines of a file with their positions."""

from collections.abc import Iterator
from io import BufferedReader
from typing import Final, NamedTuple

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One line.

    Attributes:
        start: the position of the line in the file, in bytes.
        end: the position after its line break.
        text: the line with its line break; a lone surrogate stands for each byte that is not UTF-8.
    """

    start: int
    end: int
    text: str


def lines_between(stream: BufferedReader, start: int, end: int | None) -> Iterator[Line]:
    """Yield lines.

    Args:
        stream: a file.
        start: the start of the first line.
        end: the end of the last line; None: the end of the file.
    """
    stream.seek(start)
    while (end is None or start < end) and (line := stream.readline()):
        content = line if start else line.removeprefix(_BYTE_ORDER_MARK)
        yield Line(start, start + len(line), content.decode(errors="surrogateescape"))
        start += len(line)
