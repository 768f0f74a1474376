"""Conversions of messages: large ones run on another thread, not on the event loop."""

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

_LARGE_BYTES: Final = 65_536

_P = ParamSpec("_P")
_T = TypeVar("_T")


def is_large(size: int) -> bool:
    """Tell whether converting an input of this size would block the event loop for too long."""
    return size > _LARGE_BYTES


async def converted(size: int, convert: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a conversion; for a large input on another thread, so that other calls continue meanwhile.

    Args:
        convert: the function; on the other thread it must not use objects of the event loop.
    """
    if is_large(size):
        return await asyncio.to_thread(convert, *args, **kwargs)
    return convert(*args, **kwargs)
