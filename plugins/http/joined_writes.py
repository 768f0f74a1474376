"""A transport whose writes of one moment go out together, such as the head of an answer and its body."""

import asyncio
from typing import Any, Final

# What is written without a pause is as much as this at most, so that the transport says in time that it is full.
_MOST_BYTES: Final = 65_536


class JoinedWrites:
    """Wraps a transport.

    uvicorn writes head and body apart. A server that dies in between has begun an answer that a balancer has passed on,
    and the call can go to no other server. One write is also less work than two.

    Args:
        transport: of a connection; all that is not here is done by it.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write with what else is written until the event loop goes on."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size > _MOST_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what there is, then end the connection."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        joined = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        if joined and not self._transport.is_closing():
            self._transport.write(joined)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
