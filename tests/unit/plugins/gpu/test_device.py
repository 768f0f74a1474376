"""Buffers in a device's memory, the CPU's here, beside those that the host works on itself: the same bits in both."""

import gc
import json
import shutil
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dragoman.bundle import COPY, MANIFEST, PLACE, Bundle
from dragoman.errors import BundleError
from plugins.gpu.device import DeviceDecoder, DeviceEncoder, DeviceSlots, DeviceStep
from plugins.gpu.device_memory import Buffer, DeviceMemory
from plugins.gpu.sessions import DEVICE_LOCK
from service.engine.encoder_cache import CachingEncoder, EncoderMemoryCache
from service.runtime.host import DecoderSession, EncoderSession
from service.runtime.slots import DecoderStep, SlotTable
from service.telemetry.metrics import Metrics
from tests.invariants import lengths_of
from tests.synthetic import MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS, Synthetic

pytestmark = pytest.mark.torch

SLOTS = 6
SOURCES = [[5, 2], [2], [*range(10, 30), 2], [5, 2], [7] * (MAX_SOURCE_TOKENS - 1) + [2], [9, 8, 7, 2]]
NO_ID = 1_000_000
PATIENCE_S = 30.0


class Sessions(NamedTuple):
    """Of one bundle, of both kinds."""

    bundle: Bundle
    host_encoder: EncoderSession
    host_decoder: DecoderSession
    encoder: DeviceEncoder
    decoder: DeviceDecoder


class Pair:
    """A slot table of each kind, treated alike."""

    def __init__(self, sessions: Sessions, slots: int = SLOTS) -> None:
        self.sessions = sessions
        self.host: SlotTable
        self.host_step: DecoderStep
        self.host, self.host_step = sessions.host_decoder.new_step(sessions.bundle.manifest, slots)
        self.table: DeviceSlots
        self.step: DeviceStep
        self.table, self.step = sessions.decoder.new_step(sessions.bundle.manifest, slots)
        self.sources: list[Sequence[int]] = []

    @property
    def active(self) -> int:
        return len(self.sources)

    def join(self, source: Sequence[int]) -> None:
        self.host.fill(self.active, self.sessions.host_encoder.encode([source])[0])
        self.table.fill(self.active, self.sessions.encoder.encode([source])[0])
        self.sources.append(source)

    def leave(self, slot: int) -> None:
        last = self.sources.pop()
        if slot < self.active:
            self.sources[slot] = last
            self.host.move(self.active, slot)
            self.table.move(self.active, slot)

    def fork(self, slot: int) -> None:
        for table in (self.host, self.table):
            table.fork(slot, self.active)
        self.sources.append(self.sources[slot])

    def copy(self, source: int, target: int) -> None:
        for table in (self.host, self.table):
            table.copy(source, target, 0)

    def run(self) -> None:
        """A step without its commit; the next ids and all logits are compared."""
        expected = self.host_step.run(self.active)
        np.testing.assert_array_equal(self.step.run(self.active), expected)
        for slot in range(self.active):
            assert self.table.logits_of(slot).tobytes() == self.host.logits[slot].tobytes()
            assert self.table.attention_of(slot).tobytes() == self.host.attention_of(slot).tobytes()
        first = self.active // 2
        asked = np.arange(3 * (self.active - first)).reshape(-1, 3)
        found = [step.best(first, 5, asked) for step in (self.host_step, self.step)]
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)

    def advance(self) -> None:
        self.host.commit(self.active)
        self.table.commit(self.active)

    def compare(self) -> None:
        """All that is valid of the active slots."""
        self.table.place()
        assert lengths_of(self.table, self.active) == lengths_of(self.host, self.active)
        for slot in range(self.active):
            pairs = (
                (self.table.caches, self.host.caches, self.host.rows.lengths),
                (self.table.memory, self.host.memory, self.host.rows.memory_lengths),
            )
            for buffers, expected, lengths in pairs:
                row, length = row_of(buffers, self.table.row_of(slot)), lengths[slot]
                assert row[..., :length, :].tobytes() == expected[:, :, slot, :, :length].tobytes()


def row_of(buffers: dict[str, Buffer], row: int) -> NDArray[np.generic]:
    """[layers, key and value, heads, capacity, head_dim]."""
    stacked = np.stack([buffer.value.numpy()[row] for buffer in buffers.values()])
    return stacked.reshape(-1, 2, *stacked.shape[1:])


@pytest.fixture(scope="module", params=["fp32", "int8"])
def sessions(request: pytest.FixtureRequest) -> Sessions:
    synthetic: Synthetic = request.getfixturevalue(request.param)
    bundle = synthetic.bundle
    host = EncoderSession(bundle), DecoderSession(bundle)
    return Sessions(bundle, *host, DeviceEncoder(bundle, "cpu"), DeviceDecoder(bundle, "cpu"))


@pytest.fixture
def pair(sessions: Sessions) -> Pair:
    """All slots filled."""
    pair = Pair(sessions)
    for source in SOURCES:
        pair.join(source)
    return pair


@pytest.fixture
def runs(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The CUDA graph of each run of the decoder on a device, as a GPU would find it."""
    graphs: list[str] = []
    run = sessions.decoder.session.run_with_iobinding

    def noted(binding: onnxruntime.IOBinding, options: onnxruntime.RunOptions) -> None:
        graphs.append(options.get_run_config_entry("gpu_graph_id"))
        run(binding, options)

    monkeypatch.setattr(sessions.decoder.session, "run_with_iobinding", noted)
    return graphs


def test_the_encoder_gives_what_it_gives_the_host(sessions: Sessions) -> None:
    memories = sessions.encoder.encode(SOURCES)
    for memory, expected in zip(memories, sessions.host_encoder.encode(SOURCES), strict=True):
        assert memory.nbytes == expected.nbytes
        np.testing.assert_array_equal(np.asarray(memory), expected)


def test_a_copied_memory_is_in_a_buffer_of_its_own(sessions: Sessions) -> None:
    memory = sessions.encoder.encode(SOURCES)[2]
    copy = memory.copy()
    assert copy.nbytes == memory.nbytes == copy.tensor.nbytes
    assert copy.tensor.address != memory.tensor.address
    np.testing.assert_array_equal(np.asarray(copy), np.asarray(memory))


def test_remembered_memories_stay_on_the_device_and_are_counted(sessions: Sessions) -> None:
    metrics = Metrics()
    cache = EncoderMemoryCache(1_000_000, metrics.of("m"))
    encoder = CachingEncoder(sessions.encoder.encode, cache, metrics.of("m"))
    made, found = encoder.encode(SOURCES), encoder.recall(SOURCES)
    assert metrics.total("encoder_memory_cache_hits_total") == len(SOURCES) + 1
    kept = {id(memory): memory for memory in found}.values()
    assert len(kept) == len(SOURCES) - 1, "equal sources are kept once"
    assert sum(memory.nbytes for memory in kept) < cache.size_bytes
    for one, other in zip(made, found, strict=True):
        assert isinstance(other, DeviceMemory)
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_a_filled_slot_has_its_memory_and_zeros_behind_it(pair: Pair) -> None:
    pair.compare()
    for slot, source in enumerate(SOURCES):
        assert not row_of(pair.table.memory, pair.table.row_of(slot))[..., len(source) :, :].any()


def test_both_kinds_reserve_the_same(pair: Pair) -> None:
    assert pair.table.cache_bytes == pair.host.cache_bytes


def test_a_longer_memory_than_the_slot_is_refused(sessions: Sessions) -> None:
    manifest = sessions.bundle.manifest.model_copy(update={"max_source_tokens": 3})
    table, _ = sessions.decoder.new_step(manifest, 1)
    [memory] = sessions.encoder.encode([[5, 6, 7, 2]])
    with pytest.raises(ValueError, match="4 tokens in a slot of 3"):
        table.fill(0, memory)


def test_a_bundle_that_places_one_memory_a_run_is_refused(sessions: Sessions, tmp_path: Path) -> None:
    folder = shutil.copytree(sessions.bundle.path, tmp_path / "bundle")
    shutil.copyfile(folder / COPY, folder / PLACE)  # another graph
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"][PLACE] = manifest["files"][COPY]
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=r"place\.onnx: is of an older dragoman export; export the model again"):
        DeviceDecoder(Bundle.open(folder), "cpu")


def test_steps_are_those_of_the_host_until_the_caches_are_full(pair: Pair) -> None:
    for _ in range(MAX_TARGET_TOKENS):
        pair.run()
        pair.advance()
    pair.compare()


def test_a_run_without_a_commit_changes_nothing_that_is_valid(pair: Pair) -> None:
    pair.run()
    pair.advance()
    for _ in range(3):
        pair.run()
        pair.compare()


schedules = st.lists(
    st.tuples(st.sampled_from(["join", "leave", "fork", "copy", "step", "step"]), st.integers(0, 100)), max_size=60
)


@settings(max_examples=40)
@given(slots=st.integers(1, 9), schedule=schedules)
def test_whoever_comes_and_goes_the_bits_are_those_of_the_host(
    sessions: Sessions, slots: int, schedule: list[tuple[str, int]]
) -> None:
    pair = Pair(sessions, slots)
    for act, number in schedule:
        if act == "join" and pair.active < slots:
            pair.join(SOURCES[number % len(SOURCES)])
        elif act == "leave" and pair.active:
            pair.leave(number % pair.active)
        elif act == "fork" and 0 < pair.active < slots:
            pair.fork(number % pair.active)
        elif act == "copy" and pair.active:
            source = number % pair.active
            # As in a search: both are of one source.
            pair.copy(source, next(slot for slot in range(pair.active) if pair.sources[slot] == pair.sources[source]))
        elif act == "step" and pair.active and pair.host.rows.lengths[: pair.active].max() < MAX_TARGET_TOKENS:
            pair.run()
            pair.advance()
        pair.compare()


def test_a_row_that_was_left_when_full_does_no_harm_to_its_neighbours(sessions: Sessions) -> None:
    """It is decoded still, lying between others, although there is no room for one more token."""
    pair = Pair(sessions, slots=3)
    pair.join(SOURCES[0])
    for _ in range(MAX_TARGET_TOKENS - 4):
        pair.run()
        pair.advance()
    pair.join(SOURCES[2])
    pair.join(SOURCES[4])
    for _ in range(4):
        pair.run()
        pair.advance()
    assert lengths_of(pair.table, 1)[0][0] == MAX_TARGET_TOKENS
    pair.leave(0)
    assert pair.table.row_of(0) == 2
    for _ in range(4):
        pair.run()
        pair.advance()
        pair.compare()


def test_a_move_copies_nothing_and_a_new_segment_gets_the_first_free_row(pair: Pair) -> None:
    before = [buffer.value.numpy().tobytes() for buffer in pair.table.caches.values()]
    pair.leave(1)
    pair.leave(2)
    assert [pair.table.row_of(slot) for slot in range(pair.active)] == [0, 5, 4, 3]
    assert [buffer.value.numpy().tobytes() for buffer in pair.table.caches.values()] == before
    pair.join(SOURCES[3])
    assert pair.table.row_of(pair.active - 1) == 1
    assert pair.table.first_rows(1) == 1
    assert pair.table.first_rows(2) == 6


@pytest.mark.parametrize(
    ("slots", "buckets"), [(1, {1}), (2, {1, 2}), (6, {1, 2, 4, 6}), (8, {1, 2, 4, 8}), (9, {1, 2, 4, 8, 9})]
)
def test_steps_of_any_number_of_slots_share_a_few_bindings(
    sessions: Sessions, runs: list[str], slots: int, buckets: set[int]
) -> None:
    pair = Pair(sessions, slots)
    for slot in range(slots):
        pair.join(SOURCES[slot % len(SOURCES)])
        for _ in range(2):
            pair.run()
            pair.advance()
    assert len(runs) == 2 * slots
    assert len(set(runs)) == 2 * len(buckets), "one for each of the two turns"
    assert "0" not in runs


@pytest.mark.parametrize(("slots", "buckets"), [(1, {1}), (6, {1, 2, 4, 6}), (9, {1, 2, 4, 8, 9})])
def test_all_bindings_are_there_once_a_step_is_prepared(
    sessions: Sessions, runs: list[str], slots: int, buckets: set[int]
) -> None:
    pair = Pair(sessions, slots)
    pair.step.prepare()
    prepared = set(runs)
    assert len(prepared) == len(runs) == 2 * len(buckets)
    for slot in range(slots):
        pair.join(SOURCES[slot % len(SOURCES)])
        for _ in range(2):
            pair.run()
            pair.advance()
            pair.compare()
    assert set(runs) == prepared


def test_what_was_recorded_of_a_run_that_failed_is_not_repeated(pair: Pair, runs: list[str]) -> None:
    pair.run()
    pair.run()
    sound_ids = pair.table.rows.ids.copy()
    pair.table.rows.ids[:] = NO_ID
    pair.table.rewind()
    with pytest.raises(Exception, match=r"(?i)indices|bounds|gather"):
        pair.step.run(SLOTS)
    pair.table.rows.ids[:], pair.table.divided = sound_ids, False
    pair.table.rewind()
    pair.run()
    first, again, failed, after = runs
    assert first == again == failed != after


def test_buffers_hold_no_number_that_was_there_before(sessions: Sessions) -> None:
    def tables() -> list[DeviceSlots]:
        return [sessions.decoder.new_step(sessions.bundle.manifest, SLOTS)[0] for _ in range(3)]

    def reserved(table: DeviceSlots) -> list[Buffer]:
        return [*table.caches.values(), *table.memory.values(), table.logits]

    before = tables()
    for buffer in (buffer for table in before for buffer in reserved(table)):
        buffer.value.update_inplace(np.full(buffer.shape, 77, buffer.dtype))
    del before
    for buffer in (buffer for table in tables() for buffer in reserved(table)):
        assert not buffer.value.numpy().any()


def test_sessions_end_when_no_recording_is_under_way(request: pytest.FixtureRequest) -> None:
    bundle = request.getfixturevalue("fp32").bundle
    sessions = DeviceEncoder(bundle, "cpu"), DeviceDecoder(bundle, "cpu")
    _, step = sessions[1].new_step(bundle.manifest, 2)
    bindings: list[weakref.ref[onnxruntime.IOBinding]] = []
    run = sessions[1].session.run_with_iobinding

    def noted(binding: onnxruntime.IOBinding, options: onnxruntime.RunOptions) -> None:
        bindings.append(weakref.ref(binding))
        run(binding, options)

    sessions[1].session.run_with_iobinding = noted
    step.prepare()
    ended: list[str] = []

    def close() -> None:
        for part in (step, *sessions):
            part.close()
        ended.append("closed")

    thread = threading.Thread(target=close)
    with DEVICE_LOCK:
        thread.start()
        thread.join(0.2)
        assert not ended
    thread.join(PATIENCE_S)
    assert ended
    gc.collect()
    assert bindings
    assert not any(binding() for binding in bindings)


def test_two_tables_of_a_decoder_share_no_cuda_graph(sessions: Sessions, runs: list[str]) -> None:
    for pair in (Pair(sessions), Pair(sessions)):
        pair.join(SOURCES[0])
        pair.run()
    assert len(set(runs)) == len(runs) == 2


def test_once_a_run_has_failed_slots_run_one_by_one_until_the_commit(pair: Pair) -> None:
    pair.run()
    pair.advance()
    expected = pair.host_step.run(SLOTS).tolist()
    poisoned = pair.table.row_of(3)
    sound_id = pair.table.rows.ids[poisoned]
    pair.table.rows.ids[poisoned] = NO_ID
    pair.table.rewind()
    with pytest.raises(Exception, match=r"(?i)indices|bounds|gather"):
        pair.step.run(SLOTS)
    assert pair.step.run(3).tolist() == expected[:3]
    assert pair.step.run(2, start=4).tolist() == expected[4:]
    with pytest.raises(Exception, match=r"(?i)indices|bounds|gather"):
        pair.step.run(1, start=3)
    pair.table.rows.ids[poisoned] = sound_id
    pair.advance()
    pair.leave(3)
    for _ in range(3):
        pair.run()
        pair.advance()
        pair.compare()


def test_only_steps_with_a_new_segment_upload_the_ids(pair: Pair) -> None:
    """What the device has chosen itself it has; were it asked again, this would put an id there that is none."""
    pair.run()
    pair.advance()
    pair.table.rows.ids[:] = NO_ID
    pair.run()
