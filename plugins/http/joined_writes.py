"""A transport that joins writes of one event loop iteration, such as the head and body of an answer."""

import asyncio
from typing import Any, Final

# The largest size of joined writes, so that the transport reports in time that it is full.
_MOST_BYTES: Final = 65_536


class JoinedWrites:
    """Wraps a transport.

    uvicorn writes head and body separately. A server that dies in between has begun an answer that a balancer has
    passed on, so the call cannot go to another server. One write is also less work than two.

    Args:
        transport: the transport of a connection; it handles all other methods.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Write the data together with other writes before the next iteration of the event loop."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size > _MOST_BYTES:
            self._flush()

    def close(self) -> None:
        """Write the pending data, then end the connection."""
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
