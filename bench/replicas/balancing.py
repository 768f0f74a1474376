"""Ways to choose the replica of a call. Pure."""

import random
from collections.abc import Callable, Sequence
from typing import Final, Protocol

CLIENTS: Final = 64


class Balancer(Protocol):
    """Chooses replicas."""

    def choose(self, calls: Sequence[int]) -> int:
        """Return the number of the replica for the next call.

        Args:
            calls: [replicas] that each has and has not ended.
        """


class RoundRobin:
    """Each client takes one replica after another, as gRPC's own balancing does; their calls come at random."""

    def __init__(self, replicas: int, clients: int, draw: random.Random) -> None:
        """Begin anywhere.

        Args:
            replicas: that there are.
            clients: that do not know of each other; 1: one balancer for all calls.
            draw: of the clients.
        """
        self._replicas, self._draw = replicas, draw
        self._next = [draw.randrange(replicas) for _ in range(clients)]

    def choose(self, calls: Sequence[int]) -> int:
        """Return the one after the last."""
        client = _below(len(self._next), self._draw)
        self._next[client] = (self._next[client] + 1) % self._replicas
        return self._next[client]


class TwoChoices:
    """Of two at random, the one with fewer calls: Envoy's least request."""

    def __init__(self, replicas: int, draw: random.Random) -> None:
        """Take the draws of `draw`."""
        self._replicas, self._draw = replicas, draw

    def choose(self, calls: Sequence[int]) -> int:
        """Return one of two."""
        one, other = _below(self._replicas, self._draw), _below(self._replicas, self._draw)
        return one if calls[one] <= calls[other] else other


class LeastRequests:
    """The one with the fewest calls of all, of equals the next in turn: leastconn of HAProxy, with one balancer."""

    def __init__(self, replicas: int) -> None:
        """Begin with the first."""
        self._replicas, self._last = replicas, -1

    def choose(self, calls: Sequence[int]) -> int:
        """Return the one with the fewest."""
        fewest = min(calls)
        try:
            self._last = calls.index(fewest, self._last + 1)
        except ValueError:
            self._last = calls.index(fewest)
        return self._last


def _below(count: int, draw: random.Random) -> int:
    """Draw a number; several times as fast as `randrange`."""
    return int(draw.random() * count)


# What is compared, by the name that people see.
BALANCERS: Final[dict[str, Callable[[int, random.Random], Balancer]]] = {
    f"round robin of {CLIENTS} clients": lambda replicas, draw: RoundRobin(replicas, CLIENTS, draw),
    "round robin": lambda replicas, draw: RoundRobin(replicas, 1, draw),
    "two choices": TwoChoices,
    "least requests": lambda replicas, draw: LeastRequests(replicas),
}
