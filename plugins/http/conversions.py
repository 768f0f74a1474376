"""Conversions of messages: large ones are kept off the event loop."""

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

_LARGE_BYTES: Final = 65_536

_P = ParamSpec("_P")
_T = TypeVar("_T")


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
