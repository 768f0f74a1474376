"""The facts about a call that a handler gets in addition to its messages, the same for every transport."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from service.security.access import Caller
from service.wire import CallProtocol, Metadata

_SLACK_S = 0.05  # a client whose deadline passes cancels the call, sometimes before the server's own timer


async def tell_nobody() -> None:
    """Do nothing: the first answer says that the call was accepted."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """One call; a client that leaves cancels the task that runs its handler.

    Attributes:
        caller: the caller, identified by the headers before any message is read.
        deadline_s: deadline of the call, on the clock of `time.monotonic`; None: there is none.
        metadata: metadata of the call, keys in lower case.
        accept: tells the client that its call is admitted, where that is long before the first answer.
        began_s: when the handler was called, on the same clock.
        protocol: protocol of the call.
        request_id: id of the call in the transport; "": none.
    """

    caller: Caller
    deadline_s: float | None = None
    metadata: Metadata = ()
    accept: Callable[[], Awaitable[None]] = tell_nobody
    began_s: float = field(default_factory=time.monotonic)
    protocol: CallProtocol = CallProtocol.GRPC
    request_id: str = ""

    @property
    def late(self) -> bool:
        """Whether its deadline has passed, or is about to pass."""
        return self.deadline_s is not None and self.deadline_s - time.monotonic() < _SLACK_S
