"""The body of a call, read as it arrives."""

import asyncio

from starlette.requests import Request

from dragoman.errors import DeadlineExceededError, InvalidRequestError
from plugins.http.json_messages import named
from service.security.connection_limits import ARRIVAL_TIMEOUT_S


class ClientLeftError(Exception):
    """The client has closed the connection: an answer cannot be sent."""


class Body:
    """The body of one call; needs a running event loop.

    Args:
        max_bytes: the largest size of the body.
    """

    def __init__(self, request: Request, max_bytes: int) -> None:
        self._headers = request.headers
        self._receive = request.receive
        self._max_bytes = max_bytes
        self._until_s = asyncio.get_running_loop().time() + ARRIVAL_TIMEOUT_S
        self._parts: list[bytes] = []
        self._size = 0
        self._complete = False

    async def whole(self) -> bytes:
        """Wait for the whole body.

        Raises:
            InvalidRequestError: the body is too large, or compressed.
            DeadlineExceededError: the body does not arrive in time.
            ClientLeftError: the client has closed the connection.
        """
        return await self.beginning(self._max_bytes + 1)

    async def beginning(self, size: int) -> bytes:
        """Wait for the first `size` bytes, or for all of a shorter body; the errors are those of :meth:`whole`."""
        self._check_headers()
        try:
            async with asyncio.timeout_at(self._until_s):
                while self._size < size and not self._complete:
                    await self._next()
        except TimeoutError:
            raise DeadlineExceededError(f"no complete body within {ARRIVAL_TIMEOUT_S:g} s of the headers") from None
        return b"".join(self._parts)[:size]

    async def _next(self) -> None:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientLeftError
        self._parts.append(message.get("body", b""))
        self._size += len(self._parts[-1])
        self._complete = not message.get("more_body")
        if self._size > self._max_bytes:
            raise self._too_large(f"more than {self._max_bytes}")

    def _check_headers(self) -> None:
        if self._headers.get("content-encoding", "identity").lower() != "identity":
            raise InvalidRequestError(named("content-encoding", "no body may be compressed"))
        declared = self._headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._max_bytes:
            raise self._too_large(declared)

    def _too_large(self, size: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"a body must be at most {self._max_bytes} bytes, is {size}",
            metadata={"max_request_bytes": str(self._max_bytes)},
        )
