"""The check before serving, on the synthetic model; faults are planted in the runs of its graphs."""

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from dragoman.bundle import Bundle, Manifest
from dragoman.errors import BundleError
from plugins import gpu
from plugins.gpu.device import DeviceStep
from plugins.self_check.check import BEAM_SIZE, LENGTHS, Decoded, Golden, _decode, check, golden_sources
from service.decode import Decode
from service.engine.engine import Engine
from service.queue.mailbox import Mailbox
from service.runtime.host import DecoderSession, EncoderSession
from service.runtime.slots import DecoderStep, SlotTable
from service.telemetry.metrics import Metrics
from tests.synthetic import MAX_SOURCE_TOKENS, VOCABULARY, Synthetic

pytestmark = pytest.mark.torch

Make = Callable[..., Engine]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def make(fp32: Synthetic, metrics: Metrics) -> Make:
    def make(bundle: Bundle = fp32.bundle, threads: int = 2, slots: int = 8) -> Engine:
        return Engine(bundle, Mailbox(1000), metrics, device="cpu", threads=threads, slots=slots)

    return make


def run_check(engine: Engine, synthetic: Synthetic) -> None:
    check(engine, synthetic.bundle.manifest, VOCABULARY)


@pytest.mark.parametrize("slots", [1, 3, 8, 32])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_sound_model_passes_with_any_slots(
    request: pytest.FixtureRequest, make: Make, precision: str, slots: int
) -> None:
    synthetic: Synthetic = request.getfixturevalue(precision)
    run_check(make(synthetic.bundle, slots=slots), synthetic)


def test_every_thread_is_checked_and_nothing_is_left_or_counted(
    make: Make, fp32: Synthetic, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make(threads=3)
    seen: set[int] = set()
    run = DecoderStep.run
    monkeypatch.setattr(DecoderStep, "run", lambda step, *rows: [seen.add(id(step)), run(step, *rows)][1])
    run_check(engine, fp32)
    assert len(seen) == 3
    assert [len(batch.runner.scheduler.active) for batch in engine.batches] == [0, 0, 0]
    reserved = {"dragoman_processes", "dragoman_slots", "dragoman_kv_cache_bytes"}
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    counted = {sample.name for sample in samples if sample.value and not sample.name.endswith("_created")}
    assert {name for name in counted if name.startswith("dragoman_")} == reserved


def test_each_source_is_decoded_alone_once_whatever_the_number_of_threads(
    make: Make, fp32: Synthetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large model, a step of one row takes as long as one of many."""
    rows: list[int] = []
    run = DecoderStep.run
    monkeypatch.setattr(DecoderStep, "run", lambda step, *given: [rows.append(given[0]), run(step, *given)][1])

    def runs_of_one_row(threads: int) -> int:
        rows.clear()
        run_check(make(threads=threads), fp32)
        return rows.count(1)

    assert runs_of_one_row(3) < 3 * runs_of_one_row(1)


def test_golden_sources_fit_the_model_and_are_always_the_same(fp32: Synthetic) -> None:
    manifest = fp32.bundle.manifest
    sources = golden_sources(manifest, VOCABULARY)
    assert sources == golden_sources(manifest, VOCABULARY)
    assert [len(source) for source in sources] == [min(length, MAX_SOURCE_TOKENS) for length in LENGTHS]
    assert {source[-1] for source in sources} == {manifest.eos_id}
    assert all(0 <= token < VOCABULARY for source in sources for token in source)
    tight = manifest.model_copy(update={"max_source_tokens": 2})
    assert {len(source) for source in golden_sources(tight, 5)} == {2}


def test_the_limits_of_the_model_are_kept(make: Make, fp32: Synthetic) -> None:
    tight = fp32.bundle.manifest.model_copy(update={"max_source_tokens": 2, "max_target_tokens": 2})
    engine = make(Bundle(fp32.bundle.path, tight), slots=1)
    check(engine, tight, VOCABULARY)


def test_an_encoder_whose_results_depend_on_the_company_is_found(
    make: Make, fp32: Synthetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with products whose scale is that of the whole batch."""
    encode = EncoderSession.encode

    def depending(encoder: EncoderSession, sources: Sequence[Sequence[int]]) -> list:
        return [memory * np.float32(len(sources)) for memory in encode(encoder, sources)]

    monkeypatch.setattr(EncoderSession, "encode", depending)
    with pytest.raises(BundleError, match="model synthetic: on thread 0 a sentence is decoded differently"):
        run_check(make(), fp32)


def test_a_decoder_that_mixes_slots_up_is_found_on_its_thread(
    make: Make, fp32: Synthetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, run = make(threads=2), DecoderStep.run
    threads = engine.on_each_thread(lambda runner: threading.get_ident())

    def mixing(step: DecoderStep, rows: int, start: int = 0) -> np.ndarray:
        ids = run(step, rows, start)
        if threading.get_ident() == threads[1] and rows > 6:
            ids[[2, 6]] = ids[[6, 2]]
        return ids

    monkeypatch.setattr(DecoderStep, "run", mixing)
    with pytest.raises(BundleError, match="on thread 1"):
        run_check(engine, fp32)


def with_fault(monkeypatch: pytest.MonkeyPatch, spoil: Callable[[SlotTable, range], None]) -> None:
    """Plant a decoder that spoils what it has written for some rows."""
    new_step = DecoderSession.new_step

    def new_spoiling_step(decoder: DecoderSession, manifest: Manifest, count: int) -> tuple[SlotTable, DecoderStep]:
        slots, step = new_step(decoder, manifest, count)
        run = step.run

        def spoiling(rows: int, start: int = 0) -> np.ndarray:
            next_ids = run(rows, start)
            spoil(slots, range(start, start + rows))
            return next_ids

        monkeypatch.setattr(step, "run", spoiling)
        return slots, step

    monkeypatch.setattr(DecoderSession, "new_step", new_spoiling_step)


def with_other_scores(monkeypatch: pytest.MonkeyPatch, ids: Sequence[int]) -> None:
    """Plant a decoder that lowers the logits of some tokens by one bit in the second of several rows; the ids stay."""

    def lower(slots: SlotTable, rows: range) -> None:
        if len(rows) > 1:
            logits = slots.logits[rows[1]]
            logits[ids] = np.nextafter(logits[ids], np.float32(-np.inf))

    with_fault(monkeypatch, lower)


@pytest.mark.parametrize("token", [0, VOCABULARY - 1])
def test_a_difference_in_one_bit_of_one_score_is_found(
    make: Make, fp32: Synthetic, monkeypatch: pytest.MonkeyPatch, token: int
) -> None:
    with_other_scores(monkeypatch, [token])
    with pytest.raises(BundleError, match="on thread 0 a sentence is decoded differently"):
        run_check(make(), fp32)


def test_where_scores_are_not_exact_a_difference_in_them_alone_is_none(
    make: Make, fp32: Synthetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_other_scores(monkeypatch, range(VOCABULARY))
    half = fp32.bundle.manifest.model_copy(update={"precision": "fp16"})
    check(make(), half, VOCABULARY)


def test_of_a_search_that_is_not_exact_the_probability_counts_since_two_may_tie() -> None:
    alone = Decoded([], -12.5, (), "")
    assert alone.agrees(alone._replace(log_probability=-12.51))
    assert not alone.agrees(alone._replace(log_probability=-14.0))
    assert not alone.agrees(alone._replace(target_ids=[7]))


@pytest.mark.parametrize(("precision", "compared"), [("fp32", True), ("fp16", False)])
def test_the_ids_of_a_search_are_compared_where_the_precision_is_exact(
    make: Make, fp32: Synthetic, precision: str, compared: bool
) -> None:
    manifest = fp32.bundle.manifest.model_copy(update={"precision": precision})
    golden = Golden(golden_sources(manifest, VOCABULARY)[2], BEAM_SIZE)
    [[found]] = make(threads=1).on_each_thread(lambda runner: _decode(runner, [[golden]], manifest))
    assert bool(found.target_ids) == compared
    assert found.log_probability < 0


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_attention_that_is_no_number_is_found(
    make: Make, fp32: Synthetic, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    def spoil(slots: SlotTable, rows: range) -> None:
        slots.attention_scores[rows, :, :, 1] = np.nan

    with_fault(monkeypatch, spoil)
    with pytest.raises(BundleError, match=r"cannot be run: ValueError: the attention of a token must be \d+ shares"):
        check(make(), fp32.bundle.manifest.model_copy(update={"precision": precision}), VOCABULARY)


def test_attention_that_depends_on_the_company_is_found(
    make: Make, fp32: Synthetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(slots: SlotTable, rows: range) -> None:
        slots.attention_scores[rows, :, :, 0] += np.float32(1e-4 * len(rows))

    with_fault(monkeypatch, spoil)
    with pytest.raises(BundleError, match="on thread 0 a sentence is decoded differently"):
        run_check(make(), fp32)


@pytest.mark.parametrize(("kind", "method"), [(EncoderSession, "encode"), (DecoderStep, "run")])
def test_graphs_that_do_not_run_are_one_line(
    make: Make, fp32: Synthetic, monkeypatch: pytest.MonkeyPatch, kind: type, method: str
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such\noperator")

    monkeypatch.setattr(kind, method, fail)
    with pytest.raises(BundleError) as caught:
        run_check(make(), fp32)
    assert str(caught.value) == "model synthetic: cannot be run: RuntimeError: no such operator"


def test_a_source_on_which_a_graph_fails_is_one_line(
    make: Make, fp32: Synthetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = EncoderSession.encode

    def fail_long(encoder: EncoderSession, sources: Sequence[Sequence[int]]) -> list:
        if max(map(len, sources)) == MAX_SOURCE_TOKENS:
            raise RuntimeError
        return encode(encoder, sources)

    monkeypatch.setattr(EncoderSession, "encode", fail_long)
    with pytest.raises(BundleError, match="cannot be run: TextFailedError: the engine fails on this text"):
        run_check(make(), fp32)


def with_padding_read(monkeypatch: pytest.MonkeyPatch, pad_id: int, share: float) -> None:
    """Plant an encoder in which the shortest source beside the longest is partly what it is with its padding read."""
    encode = EncoderSession.encode

    def reading(encoder: EncoderSession, sources: Sequence[Sequence[int]]) -> list[np.ndarray]:
        memories = encode(encoder, sources)
        if [len(ids) for ids in sources] == [LENGTHS[0], MAX_SOURCE_TOKENS]:
            [padded] = encode(encoder, [[*sources[0], *[pad_id] * (MAX_SOURCE_TOKENS - LENGTHS[0])]])
            memories[0] = memories[0] + np.float32(share) * (padded[: LENGTHS[0]] - memories[0])
        return memories

    monkeypatch.setattr(EncoderSession, "encode", reading)


@pytest.mark.parametrize(("precision", "share"), [("fp16", 1.0), ("fp32", 1.0), ("fp32", 1e-4)])
def test_an_encoder_that_reads_padding_is_found(
    make: Make, fp32: Synthetic, monkeypatch: pytest.MonkeyPatch, precision: str, share: float
) -> None:
    with_padding_read(monkeypatch, fp32.bundle.manifest.pad_id, share)
    with pytest.raises(BundleError, match="model synthetic: the encoder reads the padding of a batch"):
        check(make(), fp32.bundle.manifest.model_copy(update={"precision": precision}), VOCABULARY)


def test_rounding_in_half_precision_is_no_reading_of_padding(
    make: Make, fp32: Synthetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_padding_read(monkeypatch, fp32.bundle.manifest.pad_id, 1e-3)
    check(make(), fp32.bundle.manifest.model_copy(update={"precision": "fp16"}), VOCABULARY)


def test_buffers_that_a_gpu_would_have_are_checked_on_the_threads_that_run(
    fp32: Synthetic, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[int] = []
    prepare, run = DeviceStep.prepare, DeviceStep.run
    monkeypatch.setattr(DeviceStep, "prepare", lambda step: [prepared.append(threading.get_ident()), prepare(step)][1])
    mailbox = Mailbox(1000)
    graphs = gpu.open_graphs(fp32.bundle, "cpu")
    engine = Engine(fp32.bundle, mailbox, Metrics(), device="cpu", threads=2, slots=4, graphs=graphs)
    check(engine, fp32.bundle.manifest, VOCABULARY)
    ran: set[int] = set()
    monkeypatch.setattr(DeviceStep, "run", lambda step, *rows: [ran.add(threading.get_ident()), run(step, *rows)][1])
    engine.start()
    segments = [Decode([source, 2], 4) for source in range(3, 30)]
    mailbox.submit(segments)
    while not all(segment.finished for segment in segments):
        time.sleep(0.01)
    engine.stop()
    assert ran <= set(prepared)
    assert len(prepared) == 2
