"""What a server gets that is one of several."""

import socket
from collections.abc import Callable
from typing import NamedTuple


class Worker(NamedTuple):
    """The ties of a server to its supervisor.

    Attributes:
        metrics: listens for those who read the metrics.
        supervisor: a pipe that ends with the supervisor.
        tell_serving: tells the supervisor that the server takes calls.
        takes_a_place: whether others serve meanwhile: then no port is open before the models are loaded.
    """

    metrics: socket.socket
    supervisor: int
    tell_serving: Callable[[], None]
    takes_a_place: bool = False
