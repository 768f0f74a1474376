"""What asyncio lacks: to wait for the first of several events, and to keep large conversions off the event loop."""

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

_LARGE_BYTES: Final = 65_536

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def first_of(*events: asyncio.Event, timeout_s: float | None = None) -> None:
    """Wait until one of them is set, or for so long."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def is_large(size: int) -> bool:
    """Tell whether the conversion of an input of this size keeps the event loop for too long."""
    return size > _LARGE_BYTES


async def converted(size: int, convert: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function: on another thread where its input is large, so that other calls go on meanwhile.

    Args:
        convert: the function; on the other thread it may not touch what belongs to the event loop.
    """
    if is_large(size):
        return await asyncio.to_thread(convert, *args, **kwargs)
    return convert(*args, **kwargs)
