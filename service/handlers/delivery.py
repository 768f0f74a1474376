"""Messages of a handler, sent one after the other: what goes wrong at that is the handler's matter too."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

_T = TypeVar("_T")


async def deliver(messages: AsyncGenerator[_T, None], send: Callable[[_T], Awaitable[None]]) -> None:
    """Send what a handler yields, each message before it makes the next.

    The deadline of a call, its end by the server and its cancellation reach this task wherever it waits, also where it
    sends. The handler is told then, for it says how the call ends.

    Args:
        send: sends one of them, as soon as the client takes it.

    Raises:
        DragomanError: how the call ended.
    """
    async with aclosing(messages):
        async for message in messages:
            try:
                await send(message)
            except (Exception, asyncio.CancelledError) as error:
                await messages.athrow(error)
                raise AssertionError("a handler goes on though its message was not sent") from error
