"""The gate for new calls, with the models that they may choose from, and the limits of running calls."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from dragoman.errors import DeadlineExceededError, DragomanError, DrainingError, LoadingError
from service.handlers.context import CallContext
from service.registry.catalog import Catalog


class Gate:
    """Lets calls in; it is closed before :meth:`open` and after :meth:`close`; lives on the event loop.

    Attributes:
        running: number of running calls.
    """

    def __init__(self) -> None:
        self._catalog: Catalog | None = None
        self._closed = False
        self._abandonment: DragomanError | None = None
        self._limits: set[asyncio.Timeout] = set()  # of the calls that run
        self._on_close: set[Callable[[], None]] = set()
        self.running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def open(self, catalog: Catalog) -> None:
        """Take calls from now on, for these models; running calls keep the models that they have chosen."""
        self._catalog = catalog

    def close(self) -> None:
        """Refuse new calls from now on; running calls go on, with the texts that have been read."""
        self._closed = True
        for stop_reading in self._on_close:
            stop_reading()

    def abandon(self, error: DragomanError) -> None:
        """End every running call with this error, wherever it waits: its caller may not be reading."""
        self._abandonment = error
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(0.0)

    async def idle(self) -> None:
        """Wait until no call runs."""
        await self._idle.wait()

    def catalog(self) -> Catalog:
        """Give the models that a call may choose from.

        Raises:
            LoadingError: the gate has not been opened.
            DrainingError: it is closed.
        """
        if self._closed:
            raise DrainingError("the server is shutting down")
        if self._catalog is None:
            raise LoadingError("the models are being loaded")
        return self._catalog

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count a call, or other work for a client, while it runs."""
        self.running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.running -= 1
            if self.running == 0:
                self._idle.set()

    @contextmanager
    def closing(self, stop_reading: Callable[[], None]) -> Iterator[None]:
        """Have `stop_reading` called once the gate is closed, for a call that keeps reading messages."""
        self._on_close.add(stop_reading)
        try:
            yield
        finally:
            self._on_close.remove(stop_reading)

    @asynccontextmanager
    async def limited(self, context: CallContext) -> AsyncIterator[None]:
        """End a handler at the deadline of its call, or when the server abandons it.

        Raises:
            DeadlineExceededError: the deadline has passed.
            DragomanError: the error with which the server abandons its calls.
        """
        # The event loop's clock is that of `time.monotonic`. A call may come here after :meth:`abandon`.
        limit = asyncio.timeout_at(context.deadline_s if self._abandonment is None else 0.0)
        try:
            async with limit:
                self._limits.add(limit)
                try:
                    yield
                finally:
                    self._limits.remove(limit)
        except DragomanError:  # some DragomanErrors are TimeoutErrors
            raise
        except TimeoutError:
            if self._abandonment is not None:
                raise self._abandonment.with_traceback(None) from None
            given_s = 0.0 if context.deadline_s is None else context.deadline_s - context.began_s
            raise DeadlineExceededError(too_late(given_s)) from None


def too_late(given_s: float) -> str:
    """Make the message for a call that was not complete in its time."""
    if given_s < 0.0005:  # it would read as 0.000
        return "the deadline of the call had passed before its work began"
    return f"not complete within the {given_s:.3f} s of the call"
