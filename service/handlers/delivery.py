"""Sends the messages of a handler one after the other; errors of sending are raised in the handler, too."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

_T = TypeVar("_T")


async def deliver(messages: AsyncGenerator[_T, None], send: Callable[[_T], Awaitable[None]]) -> None:
    """Send the messages that a handler yields, each message before the handler makes the next one.

    The deadline of a call, its end by the server and its cancellation reach this task wherever it waits, also while it
    sends. Then the error is raised in the handler, which decides how the call ends.

    Args:
        send: sends one message, as soon as the client takes it.

    Raises:
        DragomanError: the error with which the call ended.
    """
    async with aclosing(messages):
        async for message in messages:
            try:
                await send(message)
            except (Exception, asyncio.CancelledError) as error:
                await messages.athrow(error)
                raise AssertionError("a handler goes on though its message was not sent") from error
