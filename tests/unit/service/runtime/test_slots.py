from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bundle import Manifest
from service.runtime import slots
from service.runtime.slots import RowState, SlotTable

LAYERS, HEADS, HEAD_DIM = 2, 3, 4
START = 9


@pytest.fixture(scope="module")
def shape(manifest: Manifest) -> Manifest:
    return manifest.model_copy(
        update={
            "decoder_layers": LAYERS,
            "heads": HEADS,
            "head_dim": HEAD_DIM,
            "d_model": HEADS * HEAD_DIM,
            "start_id": START,
        }
    )


def memory_of(length: int) -> np.ndarray:
    """Each number tells its place: [length, layers * 2 * heads * head_dim]."""
    return np.arange(length * LAYERS * 2 * HEADS * HEAD_DIM, dtype=np.float32).reshape(length, -1)


def test_memory_is_laid_out_as_the_decoder_reads_it(shape: Manifest) -> None:
    table, memory = SlotTable(shape, slots=3), memory_of(5)
    table.fill(1, memory)
    width = HEADS * HEAD_DIM
    for layer in range(LAYERS):
        for kind in range(2):
            part = memory[:, (2 * layer + kind) * width :][:, :width]
            for head in range(HEADS):
                expected = part[:, head * HEAD_DIM :][:, :HEAD_DIM]
                np.testing.assert_array_equal(table.memory[layer, kind, 1, head, :5], expected)
    assert not table.memory[:, :, [0, 2]].any()


def test_a_filled_slot_begins_with_the_start_id_and_an_empty_cache(shape: Manifest) -> None:
    table = SlotTable(shape, slots=2)
    table.rows.ids[:], table.rows.lengths[:] = 5, 7  # of an earlier segment
    table.fill(1, memory_of(4))
    assert table.rows.ids.tolist() == [5, 9]
    assert table.rows.lengths.tolist() == [7, 0]
    assert table.rows.memory_lengths.tolist() == [1, 4]


def test_a_commit_takes_the_next_ids(shape: Manifest) -> None:
    table = SlotTable(shape, slots=3)
    table.rows.next_ids[:] = 4, 5, 6
    table.commit(2)
    assert table.rows.ids.tolist() == [4, 5, 9]
    assert table.rows.lengths.tolist() == [1, 1, 0]


def test_a_move_copies_what_is_valid_and_nothing_else(shape: Manifest) -> None:
    table = SlotTable(shape, slots=3)
    table.fill(2, memory_of(4))
    table.caches[:, :, 2] = 1.0
    table.rows.lengths[2], table.rows.ids[2] = 3, 77
    untouched = -1.0
    table.caches[:, :, 0], table.memory[:, :, 0] = untouched, untouched
    table.move(2, 0)
    assert (table.rows.ids[0], table.rows.lengths[0], table.rows.memory_lengths[0]) == (77, 3, 4)
    np.testing.assert_array_equal(table.memory[:, :, 0, :, :4], table.memory[:, :, 2, :, :4])
    assert (table.caches[:, :, 0, :, :3] == 1.0).all()
    assert (table.caches[:, :, 0, :, 3:] == untouched).all()
    assert (table.memory[:, :, 0, :, 4:] == untouched).all()
    assert not table.caches[:, :, 1].any()


def test_a_slot_that_goes_on_as_another_copies_what_differs_and_nothing_else(shape: Manifest) -> None:
    table = SlotTable(shape, slots=3)
    for slot in (1, 2):
        table.fill(slot, memory_of(4))
    table.caches[:, :, 1], table.caches[:, :, 2] = 1.0, 2.0
    table.rows.lengths[1:], table.rows.ids[1:] = (5, 5), (7, 8)
    table.copy(1, 2, 3)
    assert (table.rows.ids[2], table.rows.lengths[2], table.rows.memory_lengths[2]) == (7, 5, 4)
    assert (table.caches[:, :, 2, :, 3:5] == 1.0).all()
    for kept in (table.caches[:, :, 2, :, :3], table.caches[:, :, 2, :, 5:]):
        assert (kept == 2.0).all()


def test_a_fork_has_all_that_is_valid(shape: Manifest) -> None:
    table = SlotTable(shape, slots=2)
    table.fill(0, memory_of(4))
    table.caches[:, :, 0] = 1.0
    table.rows.lengths[0], table.rows.ids[0] = 3, 7
    table.fork(0, 1)
    assert (table.rows.ids[1], table.rows.lengths[1], table.rows.memory_lengths[1]) == (7, 3, 4)
    np.testing.assert_array_equal(table.memory[:, :, 1, :, :4], table.memory[:, :, 0, :, :4])
    assert (table.caches[:, :, 1, :, :3] == 1.0).all()


def test_a_longer_memory_than_the_slot_is_refused(shape: Manifest) -> None:
    with pytest.raises(ValueError, match="broadcast"):
        SlotTable(shape, slots=1).fill(0, memory_of(shape.max_source_tokens + 1))


@pytest.mark.parametrize(("precision", "bytes_a_number"), [("fp32", 4), ("int8", 1), ("fp16", 2)])
def test_cache_bytes_count_both_buffers(shape: Manifest, precision: str, bytes_a_number: int) -> None:
    table = SlotTable(shape.model_copy(update={"precision": precision}), slots=5)
    tokens = shape.max_source_tokens + shape.max_target_tokens
    assert table.cache_bytes == LAYERS * 2 * 5 * HEADS * tokens * HEAD_DIM * bytes_a_number


@given(moves=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda move: move[0] != move[1])))
def test_rows_travel_whole(shape: Manifest, moves: list[tuple[int, int]]) -> None:
    table = SlotTable(shape, slots=4)
    for slot in range(4):
        table.fill(slot, np.full_like(memory_of(slot + 1), slot))
        table.caches[:, :, slot], table.rows.lengths[slot], table.rows.ids[slot] = slot, slot + 2, slot
    holds = list(range(4))
    for source, target in moves:
        table.move(source, target)
        holds[target] = holds[source]
    for slot, held in enumerate(holds):
        assert (table.rows.ids[slot], table.rows.lengths[slot], table.rows.memory_lengths[slot]) == (
            held,
            held + 2,
            held + 1,
        )
        assert (table.caches[:, :, slot, :, : held + 2] == held).all()
        assert (table.memory[:, :, slot, :, : held + 1] == held).all()


def test_the_capacities_are_those_of_the_longest_rows(shape: Manifest) -> None:
    table = SlotTable(shape, slots=2)
    table.fill(0, memory_of(5))
    table.fill(1, memory_of(shape.max_source_tokens))
    assert table.source_capacity == table.memory.shape[4] == shape.max_source_tokens
    assert table.attention_scores.shape == (2, HEADS, 1, shape.max_source_tokens)
    for length in range(1, shape.target_capacity + 1):
        table.commit(2)
        assert min(length + 1, shape.target_capacity) <= table.target_capacity == table.caches.shape[4]
        assert table.target_capacity < length + length / 8 + 9
    assert table.target_capacity == shape.target_capacity


def test_rows_move_together_again_after_a_number_of_segments(shape: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_SEGMENTS_OF_A_LAYOUT", 4)
    table = SlotTable(shape, slots=2)
    table.fill(0, memory_of(shape.max_source_tokens))
    for _ in range(shape.target_capacity):
        table.commit(1)
    for _ in range(2):
        table.fill(0, memory_of(5))
        assert table.source_capacity == shape.max_source_tokens
        assert table.target_capacity == shape.target_capacity
    table.fill(1, memory_of(2))
    assert (table.source_capacity, table.target_capacity) == (8, 8)
    np.testing.assert_array_equal(table.memory[0, 0, 0, 0, :5], memory_of(5)[:, :HEAD_DIM])


def test_a_layout_is_only_new_where_a_capacity_is(shape: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_SEGMENTS_OF_A_LAYOUT", 1)
    table, layouts = SlotTable(shape, slots=1), []
    for length in (2, 4, 5, 8, 2):
        table.fill(0, memory_of(length))
        layouts.append(table.layout)
    assert layouts == [1, 1, 2, 2, 3]
    for _ in range(8):
        table.commit(1)
    assert table.layout == 4


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="pages are only counted on Linux")
def test_a_row_that_nobody_wrote_takes_no_memory(shape: Manifest) -> None:
    wide = shape.model_copy(update={"max_source_tokens": 2**15})  # rows of half a huge page
    table, memory = SlotTable(wide, slots=32), memory_of(2**15)
    before_kib = _anonymous_kib()
    table.fill(0, memory)
    assert table.memory.nbytes == 32 * memory.nbytes
    assert _anonymous_kib() - before_kib < memory.nbytes / 1024 + 1024
    table.memory[:, :, :, :, :] = 1.0
    assert _anonymous_kib() - before_kib > table.memory.nbytes / 1024 - 1024


def _anonymous_kib() -> int:
    fields = dict(line.split(":") for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    return int(fields["Anonymous"].split()[0])


def test_a_segment_begins_with_the_start_id_and_nothing_decoded() -> None:
    rows = RowState(4, START)
    rows.ids[2], rows.lengths[2] = 5, 7
    rows.begin(2, 6)
    assert (rows.ids[2], rows.lengths[2], rows.memory_lengths[2]) == (START, 0, 6)


def test_a_commit_is_of_some_rows_wherever_they_are() -> None:
    rows = RowState(4, START)
    rows.next_ids[:] = 4, 5, 6, 7
    rows.commit(np.array([3, 1]))
    assert rows.ids.tolist() == [START, 5, START, 7]
    rows.commit(slice(2))
    assert rows.ids.tolist() == [4, 5, START, 7]
    assert rows.lengths.tolist() == [1, 2, 0, 1]


def test_a_copied_row_looks_the_same() -> None:
    rows = RowState(4, START)
    rows.begin(0, 5)
    rows.next_ids[0] = 8
    rows.commit(slice(1))
    rows.copy(0, 3)
    assert (rows.ids[3], rows.lengths[3], rows.memory_lengths[3]) == (8, 1, 5)
