"""The calls, and reloads, that wait for models: in one queue, let in as soon as all that they need is in memory."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field
from typing import Final

from dragoman.errors import DragomanError, QueueFullError
from service.registry.catalog import ServedModel

_WAITING_BYTES: Final = 1_000  # what a waiting call takes beside its message


@dataclass(eq=False)
class Waiter:
    """A call, or a reload, that waits for models; needs a running event loop.

    Attributes:
        models: that it needs together.
        held: keeps them for it, from the moment that all are there.
        size_bytes: of its message.
        is_reload: its model is new, and will be served once it is loaded.
        done: True: the models are held; False: one is not served any more.
    """

    models: Sequence[ServedModel]
    held: ExitStack
    size_bytes: int = 0
    is_reload: bool = False
    done: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class ModelWaits:
    """The queue; lives on the event loop.

    Args:
        limit_bytes: of the messages of all that wait.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._queue: list[Waiter] = []

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def first(self) -> Waiter | None:
        """Whose turn it is; None where nobody waits."""
        return self._queue[0] if self._queue else None

    def check(self, size_bytes: int) -> None:
        """Check that there is room for one more call.

        Raises:
            QueueFullError: too much waits.
        """
        waiting_bytes = sum(waiter.size_bytes + _WAITING_BYTES for waiter in self._queue)
        if self._queue and waiting_bytes + size_bytes > self._limit_bytes:
            raise QueueFullError(
                f"{len(self._queue)} calls of {waiting_bytes} bytes wait for models; the limit is {self._limit_bytes}"
            )

    async def wait(self, waiter: Waiter) -> bool:
        """Wait at the end of the queue, and give how that ended; raises what it was refused with."""
        self._queue.append(waiter)
        try:
            return await waiter.done
        finally:
            self._leave(waiter)

    def let_in(self) -> None:
        """Let all in whose models are there, in their order."""
        for waiter in self._queue.copy():
            if not waiter.done.done() and all(model.takes_calls for model in waiter.models):
                for model in waiter.models:
                    waiter.held.enter_context(model.held())
                self.settle(waiter, True)

    def settle(self, waiter: Waiter, outcome: bool | DragomanError) -> None:
        """Tell one how its wait has ended, unless it has left."""
        self._leave(waiter)
        if waiter.done.done():
            return
        if isinstance(outcome, DragomanError):
            waiter.done.set_exception(outcome)
        else:
            waiter.done.set_result(outcome)

    def refuse(self, error: DragomanError, model: ServedModel | None = None) -> None:
        """Refuse all, or all who wait for a model."""
        for waiter in self._queue.copy():
            if model is None or model in waiter.models:
                self.settle(waiter, copy(error))

    def _leave(self, waiter: Waiter) -> None:
        if waiter in self._queue:
            self._queue.remove(waiter)
