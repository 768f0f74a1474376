"""The calls, and reloads, that wait for models: by turns of clients, let in once all that they need is in memory."""

import asyncio
from bisect import insort
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
        client: whose call it is; "": of a reload.
        round: when its turn comes: a client has one turn in each round.
        done: True: the models are held; False: one is not served any more.
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
        limit_bytes: of the messages of all that wait.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._queue: list[Waiter] = []  # by their rounds

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
        """Wait for the turn of a client, and give how that ended; raises what it was refused with.

        A new client has its turn in the round that has begun, so one that waits for many models delays it by one. This
        is start-time fair queueing (Goyal et al., SIGCOMM 1996) with turns of one size.
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
