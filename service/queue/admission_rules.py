"""The rules of admission, applied before any work: room, the promised delay, the deadline."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from dragoman.errors import DeadlineUnreachableError, OverloadedError, QueueFullError
from service.options import Priority
from service.queue.fair_queue import Load

# What one client has waiting may be at most this many times the room that is then still free.
_TIMES_FREE: Final = 8
# The limit is divided by this number: one part belongs to each client, however much the others have waiting.
_SHARES: Final = 64
# The estimate is a mean: if it equals the time until the deadline, half of such requests are late. In a lasting
# overload all admitted requests are of this kind. So the time must be longer than the estimate by this factor, or the
# engine would work for callers who have given up.
_MARGIN: Final = 1.25
_SOONEST_S: Final = 0.05
_LATEST_S: Final = 30.0


class QueueLimits(NamedTuple):
    """The limits of a queue.

    Attributes:
        source_tokens: most source tokens that may wait if there is one client alone.
        text_bytes: most bytes of text in UTF-8, likewise; None: any.
        max_delay_s: longest estimated delay of an interactive request, without its own tokens; 0: any.
    """

    source_tokens: int
    text_bytes: int | None = None
    max_delay_s: float = 0.0


class Room(NamedTuple):
    """The needs of one request, and the room in the queue.

    Attributes:
        request: the request itself.
        own: waiting load of its client at its priority.
        waiting: waiting load of all clients.
        others: gives the waiting load of each other client, and of its own client at another priority.
    """

    request: Load
    own: Load
    waiting: Load
    others: Callable[[], Sequence[Load]]


class WaitEstimate(NamedTuple):
    """The work before one request.

    Attributes:
        before_start: unfinished source tokens that go before its first segment, in slots or waiting.
        before_end: the same before its last segment, without its own tokens.
        per_second: source tokens that are finished per second; None: not known.
    """

    priority: Priority
    request_tokens: int
    before_start: int
    before_end: int
    per_second: float | None


def check_room(room: Room, limits: QueueLimits, per_second: Callable[[], float | None]) -> None:
    """Refuse a request for which there is no room.

    One client alone may fill the queue to its limit. One eighth of the limit more is for the other clients: no client
    may have more waiting than eight times the room that is then still free (A. K. Choudhury and E. L. Hahne, "Dynamic
    Queue Length Thresholds for Shared-Memory Packet Switches", 1998).

    In addition, a 64th of the limit belongs to each client. So a client without waiting segments may always send a
    request of any size, since a large request enters in portions of that share. No share is left only where 64 other
    clients hold one each. So fewer than 64 clients can never make the queue refuse a sentence of another client. The
    queue is bounded by nine eighths of the limit plus all shares, which add up to the limit: by default, 425,000
    source tokens.

    Args:
        per_second: gives the source tokens that leave per second, None where that is not known.

    Raises:
        QueueFullError: no room in source tokens or bytes; it says when there will be room, if the rate is known.
    """
    measures = ("source tokens", limits.source_tokens), ("bytes of text", limits.text_bytes)
    for field, (noun, limit) in enumerate(measures):
        if limit is None:
            continue
        request, own, waiting = room.request[field], room.own[field], room.waiting[field]
        most = (limit * (_TIMES_FREE + 1) - own - request) // _TIMES_FREE
        excess = waiting + request - most  # the load that has to leave before the request fits
        if excess > 0 and not _has_share(room, field, limit):
            name, leaving = Load._fields[field], min(1.0, excess / waiting) if waiting else 1.0
            raise QueueFullError(
                f"{waiting} {noun} wait, {own} of them of this client; {request} more are above the limit of {limit}",
                metadata={
                    f"queued_{name}": str(waiting),
                    f"client_{name}": str(own),
                    f"request_{name}": str(request),
                    f"limit_{name}": str(limit),
                },
                retry_delay_s=_retry_s(leaving * room.waiting.source_tokens, per_second()),
            )


def check_delay(estimate: WaitEstimate, limits: QueueLimits) -> None:
    """Refuse an interactive request that would wait too long for its turn.

    Raises:
        OverloadedError: the estimate is above the limit; the error says when it will be below.
    """
    per_second = estimate.per_second
    if not limits.max_delay_s or estimate.priority is not Priority.INTERACTIVE or per_second is None:
        return
    delay_s = estimate.before_start / per_second
    if delay_s > limits.max_delay_s:
        raise OverloadedError(
            f"an interactive request would take {delay_s:.3f} s on top of its own time, above the limit of "
            f"{limits.max_delay_s:g} s",
            metadata={"estimated_delay_s": f"{delay_s:.3f}", "max_delay_s": f"{limits.max_delay_s:g}"},
            retry_delay_s=_retry_s(estimate.before_start - limits.max_delay_s * per_second, per_second),
        )


def check_deadline(estimate: WaitEstimate, remaining_s: float) -> None:
    """Refuse a request that would most probably be late.

    Args:
        remaining_s: time until its deadline.

    Raises:
        DeadlineUnreachableError: by the estimate, it would be late.
    """
    if estimate.per_second is None:
        return
    estimate_s = (estimate.before_end + estimate.request_tokens) / estimate.per_second
    if estimate_s * _MARGIN > remaining_s:
        raise DeadlineUnreachableError(
            f"complete in {estimate_s:.3f} s by the estimate, which leaves too little of the {remaining_s:.3f} s of "
            "the call",
            metadata={"estimated_s": f"{estimate_s:.3f}", "remaining_s": f"{remaining_s:.3f}"},
        )


def share_of(limit: int) -> int:
    """Compute the share of a limit that belongs to each client, however much the others have waiting."""
    return max(1, limit // _SHARES)


def _has_share(room: Room, field: int, limit: int) -> bool:
    """Tell whether a request is within its client's own share, and there are shares left.

    Args:
        field: index of the measure in a load: 0 for source tokens, 1 for bytes.
    """
    share, own = share_of(limit), room.own[field]
    # If its client has nothing waiting, the rest of a large request comes later, as earlier portions leave.
    needed = own + room.request[field] if own else min(room.request[field], share)
    return needed <= share and sum(min(other[field], share) for other in room.others()) + needed <= limit


def _retry_s(source_tokens: float, per_second: float | None) -> float | None:
    """Estimate the time until an excess has drained; None, which means the default, where no rate is known."""
    return None if per_second is None else min(max(source_tokens / per_second, _SOONEST_S), _LATEST_S)
