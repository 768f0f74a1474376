"""The threads that take from a queue: what each would take, what is left for it, and its waking."""

import threading
from collections.abc import Sequence
from typing import Final

from service.decode import Decode

# Source tokens that keep a thread in the encoder for several decode steps.
_LONG_RUN_TOKENS: Final = 96


class QueueWorkers:
    """Workers by number, those that were registered first being served first; all methods under the queue's lock.

    Attributes:
        demand: how many slots each would fill at its next step, before any worker behind it gets a decode.
    """

    def __init__(self, lock: threading.Lock) -> None:
        """Begin with no worker."""
        self._lock = lock
        self.demand: list[int] = []
        self._arrived: list[threading.Condition] = []
        self._filled: list[bool] = []  # whether each got at its last step all that it can take

    @property
    def saturated(self) -> bool:
        """Whether each got at its last step all that it can take."""
        return all(self._filled)

    def register(self) -> int:
        """Add a worker; gives its number."""
        self._arrived.append(threading.Condition(self._lock))
        self.demand.append(0)
        self._filled.append(False)
        return len(self._arrived) - 1

    def wait(self, worker: int) -> None:
        """Block until the worker is woken."""
        self._arrived[worker].wait()

    def left_for(self, worker: int, waiting: int) -> int:
        """Count the slots of what waits beyond the demand of the workers before this one."""
        return max(0, waiting - sum(self.demand[:worker]))

    def offer(self, worker: int, waiting: int, room: int, demand: int) -> int:
        """Compute for how many slots a worker gets decodes.

        Args:
            worker: the one that takes.
            waiting: slots that all of them need.
            room: for which it has room.
            demand: that it wants to fill; of those beyond, it leaves the others a share.
        """
        share = -(-waiting // len(self._arrived))
        left = max(0, waiting - sum(self.demand[:worker]))
        return min(room, max(share, demand), left)

    def note_taken(self, worker: int, taken: Sequence[Decode], offered: int, room: int) -> None:
        """Note what a worker got of what it was offered, and had room for."""
        # One that will be long at what it has got leaves what comes meanwhile to the others.
        slots = sum([decode.slots for decode in taken])
        source_tokens = sum([len(decode.source_ids) for decode in taken])  # the encoder reads each once
        long = slots < offered or source_tokens > _LONG_RUN_TOKENS
        self.demand[worker] = 0 if long else max(0, self.demand[worker] - slots)
        self._filled[worker] = slots >= room or slots < offered

    def wake(self, waiting: int, first: int = 0) -> None:
        """Wake the workers from `first` on for whom something is left of the decodes that wait."""
        for worker in range(first, len(self._arrived)):
            if waiting <= sum(self.demand[:worker]):
                break
            self._arrived[worker].notify()

    def wake_all(self) -> None:
        """Wake everybody."""
        for arrived in self._arrived:
            arrived.notify()
