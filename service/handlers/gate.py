"""Whether calls may come, for which models; those that run, and when they must end."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from dragoman.errors import DeadlineExceededError, DragomanError, DrainingError, LoadingError
from service.handlers.context import CallContext
from service.registry.catalog import Catalog


class Gate:
    """Is closed until :meth:`open` and after :meth:`close`; lives on the event loop.

    Attributes:
        running: calls that run.
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
        """Take calls from now on, for these models; those that run keep the model that they have chosen."""
        self._catalog = catalog

    def close(self) -> None:
        """Refuse new calls from now on; those that run go on, with what of their texts has been read."""
        self._closed = True
        for stop_reading in self._on_close:
            stop_reading()

    def abandon(self, error: DragomanError) -> None:
        """End every call that still runs with this error, wherever it waits: its caller may not be reading."""
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
        """Have a call that reads on and on told, once the gate is closed."""
        self._on_close.add(stop_reading)
        try:
            yield
        finally:
            self._on_close.remove(stop_reading)

    @asynccontextmanager
    async def limited(self, context: CallContext) -> AsyncIterator[None]:
        """End a handler at the deadline of its call, or when the server abandons it.

        Raises:
            DeadlineExceededError: it passed.
            DragomanError: what the server abandons its calls with.
        """
        limit = asyncio.timeout_at(context.deadline_s)  # the event loop's clock is that of `time.monotonic`
        try:
            async with limit:
                self._limits.add(limit)
                try:
                    yield
                finally:
                    self._limits.remove(limit)
        except DragomanError:  # some of ours are TimeoutErrors
            raise
        except TimeoutError:
            if self._abandonment is not None:
                raise self._abandonment.with_traceback(None) from None
            given_s = 0.0 if context.deadline_s is None else context.deadline_s - context.began_s
            raise DeadlineExceededError(too_late(given_s)) from None


def too_late(given_s: float) -> str:
    """Say that a call was not complete in the time that it was given."""
    if given_s < 0.0005:  # it would read as 0.000
        return "the deadline of the call had passed before its work began"
    return f"not complete within the {given_s:.3f} s of the call"
