"""Messages that are too large, broken, missing or never complete: each gets a status and a reason."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Self

import grpc.aio
from google.protobuf.message import DecodeError

from dragoman.errors import DeadlineExceededError, DragomanError, InvalidRequestError

# 8 MiB over a line of 1 Mbit/s. A message that never ends would keep what there is of it in memory for ever.
ARRIVAL_TIMEOUT_S: Final = 60.0


def parser(parse: Callable[[bytes], Any], max_bytes: int) -> Callable[[bytes], Any]:
    """Make a deserializer that gives an error in place of an invalid message: gRPC would answer UNKNOWN to it.

    Args:
        parse: makes a message of its bytes.
        max_bytes: of a message.
    """

    def parse_or_explain(message: bytes) -> Any:
        if len(message) > max_bytes:
            return InvalidRequestError(
                f"a message must be at most {max_bytes} bytes, is {len(message)}",
                metadata={"request_bytes": str(len(message)), "max_request_bytes": str(max_bytes)},
            )
        try:
            return parse(message)
        except DecodeError:
            return InvalidRequestError("the message is not a valid request: broken protobuf, or text that is not UTF-8")

    return parse_or_explain


async def arrived(context: Any) -> Any:
    """Wait for the one message of a call: what the deserializer made of it, or the error in its place."""
    try:
        async with asyncio.timeout(ARRIVAL_TIMEOUT_S):
            request = await context.read()
    except TimeoutError:
        return DeadlineExceededError(f"no complete message within {ARRIVAL_TIMEOUT_S:g} s of the start of the call")
    return InvalidRequestError("the call ended without a message") if request is grpc.aio.EOF else request


class Messages:
    """The messages of a caller who sends many, each as soon as it is asked for; raises the error in place of one."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self._context.read()
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        if isinstance(message, DragomanError):
            raise message
        return message
