"""Frames between the server and the process of a document: a length of four bytes, then the content."""

import asyncio
import struct
from typing import BinaryIO, Final

_COUNT: Final = struct.Struct(">I")


def write(stream: "BinaryIO | asyncio.StreamWriter", content: bytes) -> None:
    """Write a frame."""
    stream.write(_COUNT.pack(len(content)))
    stream.write(content)


def read(stream: BinaryIO) -> bytes:
    """Wait for a frame; raises EOFError at the end of the stream."""
    if len(head := stream.read(_COUNT.size)) < _COUNT.size:
        raise EOFError
    [count] = _COUNT.unpack(head)
    if len(content := stream.read(count)) < count:
        raise EOFError
    return content


async def receive(stream: asyncio.StreamReader) -> bytes:
    """Wait for a frame, on an event loop; raises EOFError at the end of the stream."""
    [count] = _COUNT.unpack(await stream.readexactly(_COUNT.size))
    return await stream.readexactly(count)
