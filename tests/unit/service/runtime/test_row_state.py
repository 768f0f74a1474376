from hypothesis import given
from hypothesis import strategies as st

from service.runtime.slots import RowState

START_ID = 9
SLOTS = 4


def test_a_segment_begins_with_the_start_id_and_nothing_decoded() -> None:
    rows = RowState(SLOTS, START_ID)
    rows.ids[2], rows.lengths[2] = 5, 7
    assert rows.begin(2, 6) == 2
    assert (rows.ids[2], rows.lengths[2], rows.memory_lengths[2]) == (START_ID, 0, 6)


def test_a_commit_is_of_the_first_slots_wherever_their_rows_are() -> None:
    rows = RowState(SLOTS, START_ID)
    rows.swap(0, 3)
    rows.next_ids[:] = 4, 5, 6, 7
    rows.commit(2)
    assert rows.ids.tolist() == [START_ID, 5, START_ID, 7]
    assert rows.lengths.tolist() == [0, 1, 0, 1]
    assert rows.lengths_of(3) == ([1, 1, 0], [1, 1, 1])


def test_a_slot_goes_on_from_the_token_that_it_is_given() -> None:
    rows = RowState(SLOTS, START_ID)
    rows.swap(0, 3)
    rows.force(0, 8)
    assert rows.ids.tolist() == [START_ID, START_ID, START_ID, 8]


@given(st.lists(st.tuples(st.integers(0, SLOTS - 1), st.integers(0, SLOTS - 1), st.booleans()), max_size=20))
def test_a_copied_and_a_swapped_row_look_the_same_to_the_slot_that_gets_it(moves: list[tuple[int, int, bool]]) -> None:
    rows = RowState(SLOTS, START_ID)
    for slot in range(SLOTS):
        rows.memory_lengths[rows.begin(slot, slot + 1)] = slot + 1
    held = [slot + 1 for slot in range(SLOTS)]
    for source, target, copies in moves:
        if copies:
            rows.copy(source, target)
            held[target] = held[source]
        else:
            rows.swap(source, target)
            held[source], held[target] = held[target], held[source]
        assert rows.lengths_of(SLOTS)[1] == held
    assert sorted(rows.row_of.tolist()) == list(range(SLOTS))
