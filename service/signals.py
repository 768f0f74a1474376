"""The signals of the server: SIGHUP means reload, SIGTERM or SIGINT means stop, a second one means do not wait."""

import asyncio
import signal
from typing import Final

_STOP: Final = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """Three events of the running loop.

    Attributes:
        reload: SIGHUP has come; cleared by the reload.
        stop: SIGTERM or SIGINT has come.
        force: a second SIGTERM or SIGINT has come. A SIGINT after that interrupts the process at once.
    """

    def __init__(self) -> None:
        """Handle the signals from now on."""
        self.reload = asyncio.Event()
        self.stop = asyncio.Event()
        self.force = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in _STOP:
            loop.add_signal_handler(number, self._note)
        loop.add_signal_handler(signal.SIGHUP, self.reload.set)

    def stop_with(self, pipe: int) -> None:
        """Stop also when a pipe ends; nothing is ever written to this pipe."""
        loop = asyncio.get_running_loop()

        def ended() -> None:
            loop.remove_reader(pipe)
            self.stop.set()

        loop.add_reader(pipe, ended)

    def close(self) -> None:
        """Ignore the signals from now on: the server has stopped, and no signal must interrupt the process's end."""
        loop = asyncio.get_running_loop()
        for number in (*_STOP, signal.SIGHUP):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)

    def _note(self) -> None:
        if self.stop.is_set():
            self.force.set()
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
        self.stop.set()
