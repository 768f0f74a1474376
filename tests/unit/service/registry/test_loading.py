"""Bundles become served models and go again, with the real engine on the synthetic model."""

import asyncio
import shutil
import threading
from pathlib import Path

import pytest

from dragoman.bundle import Bundle
from dragoman.errors import BundleError, InternalError
from plugins.detection.detector import LanguageDetector
from service.calls.text_worker import TextWorker
from service.decode import Decode
from service.registry.catalog import ServedModel
from service.registry.loading import Loader, load
from service.registry.model_cost import estimate
from service.segment import Segment
from service.settings import Settings
from service.telemetry.metrics import Metrics
from tests.synthetic import MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS, Synthetic

GAUGES = ("slots", "slots_active", "kv_cache_bytes", "encoder_memory_cache_bytes", "result_cache_bytes")
PATIENCE_S = 120


def gauges(metrics: Metrics) -> dict[str, float]:
    return {name: metrics.total(name, model="synthetic") for name in GAUGES}


async def test_a_model_decodes_and_takes_all_it_holds_with_it(int8: Synthetic) -> None:
    metrics = Metrics()
    loop = asyncio.get_running_loop()
    loaded = await asyncio.to_thread(load, int8.bundle, Settings(threads=2, slots=3), metrics, loop)
    ended = asyncio.Event()
    segment = Segment(Decode([5, 6, 7, 2], MAX_TARGET_TOKENS), on_progress=lambda each: each.finished and ended.set())
    loaded.in_memory().intake.submit([segment])
    await asyncio.wait_for(ended.wait(), PATIENCE_S)
    held = gauges(metrics)
    manifest = int8.bundle.manifest
    numbers = manifest.decoder_layers * 2 * manifest.attention_width * (MAX_TARGET_TOKENS + MAX_SOURCE_TOKENS)
    assert (held["slots"], held["kv_cache_bytes"]) == (6, 6 * numbers)
    assert loaded.slots == 3
    assert held["encoder_memory_cache_bytes"]
    assert held["result_cache_bytes"]
    while loaded.busy:
        await asyncio.sleep(0.001)
    loaded.close()
    for _ in range(2):  # a second time nothing happens
        await asyncio.to_thread(loaded.engine.stop)
    assert gauges(metrics) == dict.fromkeys(GAUGES, 0)


async def test_a_model_that_does_not_pass_its_check_leaves_nothing_behind(int8: Synthetic, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise BundleError("planted")

    monkeypatch.setattr("plugins.self_check.check.check", fail)
    metrics = Metrics()
    with pytest.raises(BundleError, match="planted"):
        await asyncio.to_thread(load, int8.bundle, Settings(threads=2), metrics, asyncio.get_running_loop())
    assert gauges(metrics) == dict.fromkeys(GAUGES, 0)


async def test_what_is_on_its_way_to_a_closed_model_fails(int8: Synthetic) -> None:
    settings = Settings(threads=1, result_cache_mb=0, coalesce=False)
    bundle = Bundle.open(int8.bundle.path)
    loaded = await asyncio.to_thread(load, bundle, settings, Metrics(), asyncio.get_running_loop())
    await asyncio.to_thread(loaded.engine.stop)
    with pytest.raises(InternalError):
        loaded.in_memory().intake.submit([Segment(Decode([2], 4))])


@pytest.mark.parametrize("name", ["encoder.onnx", "decoder.onnx", "weights.bin", "tokenizer.model"])
async def test_bytes_that_were_not_checked_are_not_loaded(int8: Synthetic, tmp_path: Path, name: str) -> None:
    """The file is still valid: only its hash tells that its weights, or pieces, are others."""
    bundle = Bundle.open(shutil.copytree(int8.bundle.path, tmp_path / "bundle"))
    content = bytearray((bundle.path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (bundle.path / name).write_bytes(content)
    metrics = Metrics()
    with pytest.raises(BundleError, match=rf"{name}: sha256 is .*, the manifest says"):
        await asyncio.to_thread(load, bundle, Settings(threads=2), metrics, asyncio.get_running_loop())
    assert gauges(metrics) == dict.fromkeys(GAUGES, 0)


async def test_weights_that_changed_while_nobody_looked_are_not_served(int8: Synthetic, tmp_path: Path) -> None:
    """The model decodes, so that only the end of the check tells; its engine and its slots go again."""
    bundle = Bundle.listed(shutil.copytree(int8.bundle.path, tmp_path / "bundle"))
    content = bytearray((bundle.path / "weights.bin").read_bytes())
    content[len(content) // 2] ^= 1
    (bundle.path / "weights.bin").write_bytes(content)
    metrics = Metrics()
    settings = Settings(threads=2)
    with pytest.raises(BundleError, match=r"weights\.bin: sha256 is .*, the manifest says"):
        await Loader(settings, metrics, load).load(bundle, estimate(bundle, settings))
    assert gauges(metrics) == dict.fromkeys(GAUGES, 0)


async def test_the_language_detector_is_not_loaded_while_a_model_is_measured(int8: Synthetic, monkeypatch) -> None:
    """What the detector takes would count as the model's."""
    measuring, detecting = threading.Event(), threading.Event()
    texts = TextWorker(settings := Settings(threads=1))

    def measured(*_: object) -> ServedModel:
        measuring.set()
        assert not detecting.wait(0.1)
        return ServedModel(int8.bundle.manifest, 1)

    monkeypatch.setattr(LanguageDetector, "load", lambda detector: detecting.set())
    cost = estimate(int8.bundle, settings)
    loads = asyncio.create_task(Loader(settings, Metrics(), measured).load(int8.bundle, cost))
    await asyncio.to_thread(measuring.wait)
    await texts.load_detector()
    await loads
    assert detecting.is_set()
