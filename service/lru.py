"""Values under keys, bounded in bytes."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruStore(Generic[K, V]):
    """A dictionary that never holds more bytes than its limit; the least recently used value is forgotten first.

    It has no lock of its own. Its owner gives the size of each value.

    Args:
        grown: called with the growth of the store in bytes; below 0 where it has shrunk.
    """

    def __init__(self, limit_bytes: int, grown: Callable[[int], None]) -> None:
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self._grown = grown
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Find a value, and make it the most recently used one; None if it is not there."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def clear(self) -> None:
        """Forget all values."""
        self._entries.clear()
        self._grown(-self.size_bytes)
        self.size_bytes = 0

    def put(self, key: K, value: V, size_bytes: int) -> int:
        """Keep a value as the most recently used one, unless it alone is above the limit.

        Returns:
            The number of other values that were forgotten.
        """
        before_bytes, evicted = self.size_bytes, 0
        _, old_bytes = self._entries.pop(key, (None, 0))
        self.size_bytes -= old_bytes
        if size_bytes <= self.limit_bytes:
            self._entries[key] = value, size_bytes
            self.size_bytes += size_bytes
        while self.size_bytes > self.limit_bytes:
            _, (_, old_bytes) = self._entries.popitem(last=False)
            self.size_bytes -= old_bytes
            evicted += 1
        self._grown(self.size_bytes - before_bytes)
        return evicted
