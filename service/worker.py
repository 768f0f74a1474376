"""The connection of a server that is one of several to its supervisor."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from prometheus_client import CollectorRegistry


class Worker(NamedTuple):
    """The connection of a server to its supervisor.

    Attributes:
        showing: shows the supervisor the metrics during the block.
        supervisor: a pipe that ends with the supervisor.
        tell_serving: tells the supervisor that the server takes calls.
        takes_a_place: whether other servers serve meanwhile: then no port is opened before the models are loaded.
    """

    showing: Callable[[CollectorRegistry], AbstractAsyncContextManager[None]]
    supervisor: int
    tell_serving: Callable[[], None]
    takes_a_place: bool = False
