"""The choice of models to unload for another model: the least recently used first. Pure functions."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from service.registry.catalog import ServedModel


class Resident(NamedTuple):
    """A model in memory.

    Attributes:
        model: the model.
        cost_bytes: its memory.
        pinned: whether it must stay.
        in_use: whether calls run on it, or it is being unloaded and still takes its memory.
        leaving: whether it takes no new calls, so that it can be unloaded.
        last_used_s: when a call last began or ended.
        held_since_s: when its oldest running call began; None: no call runs.
    """

    model: ServedModel
    cost_bytes: int
    pinned: bool = False
    in_use: bool = False
    leaving: bool = False
    last_used_s: float = 0.0
    held_since_s: float | None = None


def victims(residents: Sequence[Resident], cost_bytes: int, budget_bytes: int) -> list[ServedModel] | None:
    """Choose the models to unload so that another one has room.

    Args:
        residents: all models in memory.
        cost_bytes: the memory of the other model.
        budget_bytes: the limit for all models together.

    Returns:
        Models that are neither pinned nor in use, the least recently used first, and only as many as needed; None if
        they do not free enough memory.
    """
    free = [resident for resident in residents if not resident.pinned and not resident.in_use]
    order = sorted(free, key=lambda resident: resident.last_used_s)
    chosen, missing_bytes = _first(order, _missing_bytes(residents, cost_bytes, budget_bytes))
    return [resident.model for resident in chosen] if missing_bytes <= 0 else None


def to_free(residents: Sequence[Resident], cost_bytes: int, budget_bytes: int) -> list[ServedModel]:
    """Choose models in use to take no new calls, so that there is room after their running calls have ended.

    The arguments are those of :func:`victims`, which has not freed enough memory.

    Returns:
        Models that are not pinned, the one with the most recent calls first, since it will probably be free first. A
        model that is already leaving stays chosen: otherwise it would never become free.
    """
    free = [resident for resident in residents if not resident.pinned and not resident.in_use]
    missing_bytes = _missing_bytes(residents, cost_bytes, budget_bytes) - sum(each.cost_bytes for each in free)
    held = [each for each in residents if each.held_since_s is not None and not each.pinned]
    order = sorted(held, key=lambda resident: (not resident.leaving, -(resident.held_since_s or 0.0)))
    return [resident.model for resident in _first(order, missing_bytes)[0]]


def _missing_bytes(residents: Iterable[Resident], cost_bytes: int, budget_bytes: int) -> int:
    return sum(resident.cost_bytes for resident in residents) + cost_bytes - budget_bytes


def _first(order: Iterable[Resident], missing_bytes: int) -> tuple[list[Resident], int]:
    """Take models in order until enough memory is free; returns them, and the bytes still missing."""
    chosen: list[Resident] = []
    for resident in order:
        if missing_bytes <= 0:
            break
        chosen.append(resident)
        missing_bytes -= resident.cost_bytes
    return chosen, missing_bytes
