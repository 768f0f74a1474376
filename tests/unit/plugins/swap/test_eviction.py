"""Which models leave: whatever is in memory, of whatever size."""

from hypothesis import given
from hypothesis import strategies as st

from plugins.swap.eviction import Resident, to_free, victims
from service.registry.catalog import ServedModel

COSTS = st.integers(0, 50)


@st.composite
def residents_of(draw: st.DrawFn) -> list[Resident]:
    """Any models in memory; no two were used at the same time."""
    uses = draw(st.lists(st.integers(0, 100), max_size=8, unique=True))
    return [
        Resident(
            ServedModel(None, 1),
            draw(COSTS),
            pinned=draw(st.booleans()),
            in_use=(held := draw(st.booleans())),
            leaving=held and draw(st.booleans()),
            last_used_s=float(use),
            held_since_s=float(draw(st.integers(0, 100))) if held else None,
        )
        for use in uses
    ]


def cost_of(residents: list[Resident], models: list[ServedModel]) -> int:
    return sum(resident.cost_bytes for resident in residents if resident.model in models)


@given(residents_of(), COSTS, st.integers(0, 400))
def test_those_that_leave_make_room_and_are_free_and_were_used_least_recently(residents, cost, budget) -> None:
    chosen = victims(residents, cost, budget)
    free = sorted(
        (each for each in residents if not each.pinned and not each.in_use), key=lambda each: each.last_used_s
    )
    total = sum(each.cost_bytes for each in residents)
    if chosen is None:
        assert total - sum(each.cost_bytes for each in free) + cost > budget
        return
    assert chosen == [each.model for each in free[: len(chosen)]]
    assert total - cost_of(residents, chosen) + cost <= budget
    if chosen:  # no more than needed
        assert total - cost_of(residents, chosen[:-1]) + cost > budget


@given(residents_of(), COSTS, st.integers(0, 400))
def test_those_that_are_to_become_free_are_in_use_and_not_pinned_and_enough_if_that_can_be(
    residents, cost, budget
) -> None:
    chosen = to_free(residents, cost, budget)
    by_model = {each.model: each for each in residents}
    assert all(by_model[model].in_use and not by_model[model].pinned for model in chosen)
    pinned = sum(each.cost_bytes for each in residents if each.pinned)
    held = sum(each.cost_bytes for each in residents if not each.pinned and each.in_use)
    if pinned + cost <= budget:
        assert pinned + held - cost_of(residents, chosen) + cost <= budget


def test_the_model_whose_calls_are_young_is_freed_first_and_remains_chosen() -> None:
    stream, short = (Resident(ServedModel(None, 1), 5, in_use=True, held_since_s=since) for since in (1.0, 100.0))
    assert to_free([stream, short], 5, 10) == [short.model]
    later = short._replace(leaving=True, held_since_s=50.0)
    younger = stream._replace(held_since_s=200.0)
    assert to_free([younger, later], 5, 10) == [short.model]
