import numpy as np

from service.runtime.row_state import RowState

START_ID = 9
ROWS = 4


def test_a_segment_begins_with_the_start_id_and_nothing_decoded() -> None:
    rows = RowState(ROWS, START_ID)
    rows.ids[2], rows.lengths[2] = 5, 7
    rows.begin(2, 6)
    assert (rows.ids[2], rows.lengths[2], rows.memory_lengths[2]) == (START_ID, 0, 6)


def test_a_commit_is_of_some_rows_wherever_they_are() -> None:
    rows = RowState(ROWS, START_ID)
    rows.next_ids[:] = 4, 5, 6, 7
    rows.commit(np.array([3, 1]))
    assert rows.ids.tolist() == [START_ID, 5, START_ID, 7]
    rows.commit(slice(2))
    assert rows.ids.tolist() == [4, 5, START_ID, 7]
    assert rows.lengths_of(np.array([3, 1, 0])) == ([1, 2, 1], [1, 1, 1])


def test_a_copied_row_looks_the_same() -> None:
    rows = RowState(ROWS, START_ID)
    rows.begin(0, 5)
    rows.next_ids[0] = 8
    rows.commit(slice(1))
    rows.copy(0, 3)
    assert (rows.ids[3], rows.lengths_of(np.array([3]))) == (8, ([1], [5]))
