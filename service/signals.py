"""SIGTERM and SIGINT as the server sees them: the first asks it to stop, the second not to wait for anything."""

import asyncio
import signal
from contextlib import suppress


class Signals:
    """Two events of the running loop.

    Attributes:
        stop: a signal has come.
        hurry: a second one has. A SIGINT after that interrupts, from a terminal whose owner is impatient.
    """

    def __init__(self) -> None:
        """Handle both signals from now on."""
        self.stop = asyncio.Event()
        self.hurry = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._note)

    async def pause(self, seconds: float) -> None:
        """Sleep, unless there is a hurry."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.hurry.wait(), seconds)

    def _note(self) -> None:
        if self.stop.is_set():
            self.hurry.set()
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        self.stop.set()
