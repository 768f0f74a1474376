"""Who calls: the name under which a call is served in turn with those of others."""

from typing import NamedTuple, Protocol


class Context(Protocol):
    """What is used of `grpc.aio.ServicerContext`, which has no types."""

    def peer(self) -> str:
        """Where the call comes from: "ipv4:192.0.2.7:40000", "ipv6:%5B::1%5D:40000", "unix:..."."""


class Caller(NamedTuple):
    """One who calls.

    Attributes:
        name: the same for all calls of one client; never shown to another.
    """

    name: str


def identify(context: Context) -> Caller:
    """Tell who calls: a host, whatever its port."""
    family, _, place = context.peer().partition(":")
    return Caller(f"{family}:{place.rpartition(':')[0] or place}")
