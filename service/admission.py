"""What may come in, decided before any work: by room, by the delay that is promised, by the deadline; pure."""

from collections.abc import Callable
from typing import Final, NamedTuple

from dragoman.errors import DeadlineUnreachableError, OverloadedError, QueueFullError
from service.fair_queue import Load
from service.terms import Priority

# One client may have this many times as much waiting as is left free then.
_SHARE: Final = 8
# The estimate is a mean: of the requests for which it says the very time that is left, half would miss it. In an
# overload that lasts, those who get in are all such: so much of it has to be to spare, or the engine would work for
# callers who have given up.
_MARGIN: Final = 1.25
_SOONEST_S: Final = 0.05
_LATEST_S: Final = 30.0


class QueueLimits(NamedTuple):
    """What may wait.

    Attributes:
        source_tokens: of one client alone.
        text_bytes: of one client alone, in UTF-8; None: any.
        max_delay_s: of an interactive request, estimated, its own tokens not counted; 0: any.
    """

    source_tokens: int
    text_bytes: int | None = None
    max_delay_s: float = 0.0


class Room(NamedTuple):
    """What one request needs, and what there is.

    Attributes:
        request: the request itself.
        own: what waits of its client at its priority.
        waiting: what waits of all.
    """

    request: Load
    own: Load
    waiting: Load


class Outlook(NamedTuple):
    """What one request has before it.

    Attributes:
        priority: its own.
        request_tokens: its own, in source tokens.
        before_start: unfinished source tokens that go before its first segment, in slots or waiting.
        before_end: the same before its last, its own not counted.
        per_second: source tokens that are finished a second; None: not known.
    """

    priority: Priority
    request_tokens: int
    before_start: int
    before_end: int
    per_second: float | None


def check_room(room: Room, limits: QueueLimits, per_second: Callable[[], float | None]) -> None:
    """Refuse what does not fit. Where nothing waits, everything does.

    One client alone may fill the queue to its limit. An eighth more is there for others, none of whom may take more
    than eight times what it leaves free, so that there is always room for the next (A. K. Choudhury and E. L. Hahne,
    "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998).

    Args:
        room: for the request.
        limits: of the queue.
        per_second: gives the source tokens that leave a second, None where that is not known.

    Raises:
        QueueFullError: no room in source tokens or bytes; says when there will be, if the rate is known.
    """
    request, own, waiting = room
    if not waiting.source_tokens:
        return
    tokens = _excess(request.source_tokens, own.source_tokens, waiting.source_tokens, limits.source_tokens)
    if tokens > 0:
        raise QueueFullError(
            f"{waiting.source_tokens} source tokens wait, {own.source_tokens} of them of this client; "
            f"{request.source_tokens} more are above the limit of {limits.source_tokens}",
            metadata={
                "queued_source_tokens": str(waiting.source_tokens),
                "client_source_tokens": str(own.source_tokens),
                "request_source_tokens": str(request.source_tokens),
                "limit_source_tokens": str(limits.source_tokens),
            },
            retry_delay_s=_retry_s(min(tokens, waiting.source_tokens), per_second()),
        )
    if limits.text_bytes is None:
        return
    size_bytes = _excess(request.text_bytes, own.text_bytes, waiting.text_bytes, limits.text_bytes)
    if size_bytes > 0:
        share = min(1.0, size_bytes / waiting.text_bytes) if waiting.text_bytes else 1.0
        raise QueueFullError(
            f"{waiting.text_bytes} bytes of text wait, {own.text_bytes} of them of this client; "
            f"{request.text_bytes} more are above the limit of {limits.text_bytes}",
            metadata={
                "queued_text_bytes": str(waiting.text_bytes),
                "client_text_bytes": str(own.text_bytes),
                "request_text_bytes": str(request.text_bytes),
                "limit_text_bytes": str(limits.text_bytes),
            },
            retry_delay_s=_retry_s(share * waiting.source_tokens, per_second()),
        )


def check_delay(outlook: Outlook, limits: QueueLimits) -> None:
    """Refuse an interactive request that would wait too long before it has its turn.

    Raises:
        OverloadedError: says when the estimate will be below the limit.
    """
    per_second = outlook.per_second
    if not limits.max_delay_s or outlook.priority is not Priority.INTERACTIVE or per_second is None:
        return
    delay_s = outlook.before_start / per_second
    if delay_s > limits.max_delay_s:
        raise OverloadedError(
            f"an interactive request would take {delay_s:.3f} s on top of its own time, above the limit of "
            f"{limits.max_delay_s:g} s",
            metadata={"estimated_delay_s": f"{delay_s:.3f}", "max_delay_s": f"{limits.max_delay_s:g}"},
            retry_delay_s=_retry_s(outlook.before_start - limits.max_delay_s * per_second, per_second),
        )


def check_deadline(outlook: Outlook, remaining_s: float) -> None:
    """Refuse a request that would most probably be late.

    Args:
        outlook: of the request.
        remaining_s: until its deadline.

    Raises:
        DeadlineUnreachableError: by the estimate, it is.
    """
    if outlook.per_second is None:
        return
    estimate_s = (outlook.before_end + outlook.request_tokens) / outlook.per_second
    if estimate_s * _MARGIN > remaining_s:
        raise DeadlineUnreachableError(
            f"complete in {estimate_s:.3f} s by the estimate, which leaves too little of the {remaining_s:.3f} s of "
            "the call",
            metadata={"estimated_s": f"{estimate_s:.3f}", "remaining_s": f"{remaining_s:.3f}"},
        )


def _excess(request: int, own: int, waiting: int, limit: int) -> int:
    """How much has to leave before a request fits; not above 0: it fits."""
    return -((limit * (_SHARE + 1) - own - request) // _SHARE - waiting - request)


def _retry_s(source_tokens: float, per_second: float | None) -> float | None:
    """How long it takes until so much has drained; None, which means the default, where the rate is not known."""
    return None if per_second is None else min(max(source_tokens / per_second, _SOONEST_S), _LATEST_S)
