"""The queue of calls and reloads that wait for models: clients take turns; a waiter is admitted with all its models."""

import asyncio
from bisect import insort
from collections.abc import Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field
from typing import Final

from dragoman.errors import DragomanError, QueueFullError
from service.registry.catalog import ServedModel

_WAITING_BYTES: Final = 1_000  # memory of a waiting call besides its message


@dataclass(eq=False)
class Waiter:
    """A call or reload that waits for models; needs a running event loop.

    Attributes:
        models: the models that it needs together.
        held: holds the models for it, once all are loaded.
        size_bytes: the size of its message.
        is_reload: whether its model is new, and will be served once it is loaded.
        client: the client of the call; "": a reload.
        round: the round of its turn: a client has one turn in each round.
        done: True: the models are held; False: a model is no longer served.
    """

    models: Sequence[ServedModel]
    held: ExitStack
    size_bytes: int = 0
    is_reload: bool = False
    client: str = ""
    round: int = field(default=0, init=False)
    done: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class ModelWaits:
    """The queue; lives on the event loop.

    Args:
        limit_bytes: for the messages of all waiting calls together.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._queue: list[Waiter] = []  # sorted by round

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def first(self) -> Waiter | None:
        """The waiter whose turn it is; None if the queue is empty."""
        return self._queue[0] if self._queue else None

    def check(self, size_bytes: int) -> None:
        """Check that there is room for another call.

        Raises:
            QueueFullError: the queue is full.
        """
        waiting_bytes = sum(waiter.size_bytes + _WAITING_BYTES for waiter in self._queue)
        if self._queue and waiting_bytes + size_bytes > self._limit_bytes:
            raise QueueFullError(
                f"{len(self._queue)} calls of {waiting_bytes} bytes wait for models; the limit is {self._limit_bytes}"
            )

    async def wait(self, waiter: Waiter) -> bool:
        """Wait for the client's turn, and return the outcome; raises the error of a refused call.

        A new client's turn is in the current round, so a client that waits for many models delays it by one turn. This
        is start-time fair queueing (Goyal et al., SIGCOMM 1996) with turns of equal size.
        """
        own = [each.round for each in self._queue if each.client == waiter.client]
        begun = self._queue[0].round if self._queue else 0
        waiter.round = own[-1] + 1 if own else begun
        insort(self._queue, waiter, key=lambda each: each.round)
        try:
            return await waiter.done
        finally:
            self._leave(waiter)

    def let_in(self) -> None:
        """Admit all waiters whose models are loaded, in their order."""
        for waiter in self._queue.copy():
            if not waiter.done.done() and all(model.takes_calls for model in waiter.models):
                for model in waiter.models:
                    waiter.held.enter_context(model.held())
                self.settle(waiter, True)

    def settle(self, waiter: Waiter, outcome: bool | DragomanError) -> None:
        """Set the outcome of a waiter, unless it has left."""
        self._leave(waiter)
        if waiter.done.done():
            return
        if isinstance(outcome, DragomanError):
            waiter.done.set_exception(outcome)
        else:
            waiter.done.set_result(outcome)

    def refuse(self, error: DragomanError, model: ServedModel | None = None) -> None:
        """Refuse all waiters, or all waiters for one model."""
        for waiter in self._queue.copy():
            if model is None or model in waiter.models:
                self.settle(waiter, copy(error))

    def _leave(self, waiter: Waiter) -> None:
        if waiter in self._queue:
            self._queue.remove(waiter)
