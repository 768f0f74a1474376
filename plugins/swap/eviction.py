"""Which models leave the memory to make room for another: the least recently used first; pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from service.registry.catalog import ServedModel


class Resident(NamedTuple):
    """A model that takes memory.

    Attributes:
        model: that may leave.
        cost_bytes: what it takes.
        pinned: it has to stay.
        in_use: calls run on it, or it is leaving already and takes its memory until it has left.
        leaving: it takes no new calls, so that it can leave.
        last_used_s: when a call last began or ended.
        held_since_s: when the oldest of its calls began; None where it has none.
    """

    model: ServedModel
    cost_bytes: int
    pinned: bool = False
    in_use: bool = False
    leaving: bool = False
    last_used_s: float = 0.0
    held_since_s: float | None = None


def victims(residents: Sequence[Resident], cost_bytes: int, budget_bytes: int) -> list[ServedModel] | None:
    """Choose the models that leave so that another has room.

    Args:
        residents: all that take memory.
        cost_bytes: of the other.
        budget_bytes: for all together.

    Returns:
        Models that are neither pinned nor in use, the least recently used first, and no more than needed; None where
        they do not make enough room.
    """
    free = [resident for resident in residents if not resident.pinned and not resident.in_use]
    order = sorted(free, key=lambda resident: resident.last_used_s)
    chosen, missing_bytes = _first(order, _missing_bytes(residents, cost_bytes, budget_bytes))
    return [resident.model for resident in chosen] if missing_bytes <= 0 else None


def to_free(residents: Sequence[Resident], cost_bytes: int, budget_bytes: int) -> list[ServedModel]:
    """Choose models in use that are to take no new calls, so that there is room once those that run have ended.

    The arguments are those of :func:`victims`, which has found too little.

    Returns:
        Models that are not pinned: first the one whose calls run for the shortest time, since it is likely to be free
        first. One that is leaving stays among them: else it would never be free.
    """
    free = [resident for resident in residents if not resident.pinned and not resident.in_use]
    missing_bytes = _missing_bytes(residents, cost_bytes, budget_bytes) - sum(each.cost_bytes for each in free)
    held = [each for each in residents if each.held_since_s is not None and not each.pinned]
    order = sorted(held, key=lambda resident: (not resident.leaving, -(resident.held_since_s or 0.0)))
    return [resident.model for resident in _first(order, missing_bytes)[0]]


def _missing_bytes(residents: Iterable[Resident], cost_bytes: int, budget_bytes: int) -> int:
    return sum(resident.cost_bytes for resident in residents) + cost_bytes - budget_bytes


def _first(order: Iterable[Resident], missing_bytes: int) -> tuple[list[Resident], int]:
    """Take as many of the first as make up for what is missing; gives them, and what is still missing."""
    chosen: list[Resident] = []
    for resident in order:
        if missing_bytes <= 0:
            break
        chosen.append(resident)
        missing_bytes -= resident.cost_bytes
    return chosen, missing_bytes
