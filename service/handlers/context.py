"""What a handler is told of its call beside its messages, whatever the transport."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from service.security.access import Caller
from service.wire import Metadata, Protocol

_SLACK_S = 0.05  # a client whose deadline passes cancels the call, at times before our own timer


async def tell_nobody() -> None:
    """Do nothing: the first answer says that the call was accepted."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """One call; a client that leaves cancels the task that runs its handler.

    Attributes:
        caller: who calls, by the headers: known before any message is read.
        deadline_s: when the answer is of no more use, on the clock of `time.monotonic`; None: never.
        metadata: what came with the call, keys in lower case.
        accept: tells the client that its call is let in, where that comes long before the first answer.
        began_s: when the handler was called, on the same clock.
        protocol: by what it came.
        request_id: that the transport has for it; "": none.
    """

    caller: Caller
    deadline_s: float | None = None
    metadata: Metadata = ()
    accept: Callable[[], Awaitable[None]] = tell_nobody
    began_s: float = field(default_factory=time.monotonic)
    protocol: Protocol = Protocol.GRPC
    request_id: str = ""

    @property
    def late(self) -> bool:
        """Whether its deadline has passed, or does so in this moment."""
        return self.deadline_s is not None and self.deadline_s - time.monotonic() < _SLACK_S
