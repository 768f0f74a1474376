"""The sessions on the synthetic model: what a run writes, and that it depends on nothing but its own row."""

import sys
from pathlib import Path

import numpy as np
import pytest

from dragoman.bundle import DECODER, ENCODER, WEIGHTS, Bundle, sha256
from dragoman.errors import BundleError
from service.runtime.host import DecoderSession, EncoderSession
from service.runtime.sessions import open_session
from service.runtime.slots import DecoderStep, SlotTable
from service.runtime.weights import Weights
from tests.synthetic import MAX_SOURCE_TOKENS, Synthetic

pytestmark = pytest.mark.torch

SLOTS = 4
SOURCES = [[5, 2], [2], [*range(10, 30), 2], [5, 2], [7] * (MAX_SOURCE_TOKENS - 1) + [2]]


@pytest.fixture(scope="module", params=["fp32", "int8"])
def bundle(request: pytest.FixtureRequest) -> Bundle:
    synthetic: Synthetic = request.getfixturevalue(request.param)
    return synthetic.bundle


@pytest.fixture(scope="module")
def encoder(bundle: Bundle) -> EncoderSession:
    return EncoderSession(bundle)


@pytest.fixture(scope="module")
def decoder(bundle: Bundle) -> DecoderSession:
    return DecoderSession(bundle)


@pytest.fixture
def table(bundle: Bundle, encoder: EncoderSession) -> SlotTable:
    """All slots filled."""
    table = SlotTable(bundle.manifest, SLOTS)
    for slot, memory in enumerate(encoder.encode(SOURCES[:SLOTS])):
        table.fill(slot, memory)
    return table


def test_the_memory_of_a_source_is_the_same_in_any_batch(bundle: Bundle, encoder: EncoderSession) -> None:
    manifest = bundle.manifest
    for source, memory in zip(SOURCES, encoder.encode(SOURCES), strict=True):
        assert memory.shape == (len(source), manifest.decoder_layers * 2 * manifest.attention_width)
        [alone] = encoder.encode([source])
        np.testing.assert_array_equal(memory, alone)


def test_different_sources_have_different_memories(encoder: EncoderSession) -> None:
    first, same, other = encoder.encode([[5, 6, 2], [5, 6, 2], [6, 5, 2]])
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


def test_a_step_writes_one_cell_a_row_and_the_next_ids(table: SlotTable, decoder: DecoderSession) -> None:
    step = DecoderStep(decoder.session, decoder.search, table)
    rows = 3
    step.run(rows)
    table.commit(rows)
    state = table.rows
    kept = table.memory, state.ids, state.lengths, state.memory_lengths
    caches, before = table.caches.copy(), [array.copy() for array in kept]
    next_ids = step.run(rows)
    assert np.shares_memory(next_ids, table.rows.next_ids)
    assert next_ids.shape == (rows,)
    np.testing.assert_array_equal(next_ids, table.logits[:rows].argmax(axis=1))
    written = np.zeros(table.caches.shape, bool)
    written[:, :, :rows, :, 1] = True
    assert (table.caches[written] != 0).any()
    np.testing.assert_array_equal(table.caches[~written], caches[~written])
    for array, copied in zip(kept, before, strict=True):
        np.testing.assert_array_equal(array, copied)


def test_a_step_of_some_rows_is_theirs_of_the_whole_step(table: SlotTable, decoder: DecoderSession) -> None:
    step = DecoderStep(decoder.session, decoder.search, table)
    step.run(SLOTS)
    ids, logits, caches = table.rows.next_ids.copy(), table.logits.copy(), table.caches.copy()
    for buffer in (table.rows.next_ids, table.logits, table.caches):
        buffer[:] = 0
    np.testing.assert_array_equal(step.run(2, start=1), ids[1:3])
    np.testing.assert_array_equal(table.logits[1:3], logits[1:3])
    np.testing.assert_array_equal(table.caches[:, :, 1:3], caches[:, :, 1:3])
    assert not table.logits[[0, 3]].any()
    assert not table.caches[:, :, [0, 3]].any()


def test_a_step_run_again_gives_the_same(table: SlotTable, decoder: DecoderSession) -> None:
    step = DecoderStep(decoder.session, decoder.search, table)
    ids = step.run(SLOTS).tolist()
    caches, memory = table.caches.copy(), table.memory.copy()
    assert step.run(SLOTS).tolist() == ids
    np.testing.assert_array_equal(table.caches, caches)
    np.testing.assert_array_equal(table.memory, memory)


def test_what_lies_beyond_the_lengths_is_not_read(bundle: Bundle, table: SlotTable, decoder: DecoderSession) -> None:
    expected = DecoderStep(decoder.session, decoder.search, table).run(SLOTS).tolist()
    littered = SlotTable(bundle.manifest, SLOTS)
    for slot, length in enumerate(table.rows.memory_lengths):
        littered.fill(slot, np.zeros((length, 2 * bundle.manifest.decoder_layers * bundle.manifest.attention_width)))
    litter = 77 if bundle.manifest.precision == "int8" else np.nan
    littered.caches[:], littered.memory[:] = litter, litter
    for name in ("ids", "lengths", "memory_lengths"):
        getattr(littered.rows, name)[:] = getattr(table.rows, name)
    for slot, length in enumerate(table.rows.memory_lengths):
        littered.memory[:, :, slot, :, :length] = table.memory[:, :, slot, :, :length]
    assert DecoderStep(decoder.session, decoder.search, littered).run(SLOTS).tolist() == expected


def test_a_row_is_the_same_whatever_the_number_of_rows(table: SlotTable, decoder: DecoderSession) -> None:
    step = DecoderStep(decoder.session, decoder.search, table)
    expected = step.run(SLOTS).tolist()
    caches = table.caches.copy()
    for rows in range(1, SLOTS):
        assert step.run(rows).tolist() == expected[:rows]
        np.testing.assert_array_equal(table.caches, caches)


@pytest.mark.parametrize(("session", "name"), [(EncoderSession, ENCODER), (DecoderSession, DECODER)])
def test_a_broken_graph_is_named_in_one_line(bundle: Bundle, tmp_path: Path, session: type, name: str) -> None:
    (tmp_path / name).write_bytes(b"no graph")
    manifest = bundle.manifest.model_copy(update={"files": {name: sha256(tmp_path / name)}})
    with pytest.raises(BundleError) as caught:
        session(Bundle(tmp_path, manifest))
    assert str(tmp_path / name) in caught.value.message
    assert "\n" not in caught.value.message


def test_the_bytes_of_a_file_are_kept_by_nobody(bundle: Bundle) -> None:
    content = bundle.read(DECODER)
    before = sys.getrefcount(content)
    with bundle.mapped(WEIGHTS) as weights:
        session = open_session(content, bundle.path / DECODER, weights=Weights(weights))
    assert sys.getrefcount(content) == before
    del session
