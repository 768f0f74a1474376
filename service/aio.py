"""Waiting for whichever of several events comes first."""

import asyncio


async def first_of(*events: asyncio.Event, timeout_s: float | None = None) -> None:
    """Wait until one of them is set, or for so long."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
