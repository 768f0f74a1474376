"""What a server gets that is one of several."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from prometheus_client import CollectorRegistry


class Worker(NamedTuple):
    """The ties of a server to its supervisor.

    Attributes:
        showing: shows the supervisor the metrics for the time of the block.
        supervisor: a pipe that ends with the supervisor.
        tell_serving: tells the supervisor that the server takes calls.
        takes_a_place: whether others serve meanwhile: then no port is open before the models are loaded.
    """

    showing: Callable[[CollectorRegistry], AbstractAsyncContextManager[None]]
    supervisor: int
    tell_serving: Callable[[], None]
    takes_a_place: bool = False
