"""Models that come and go; the tests play their engines."""

import asyncio
from typing import NamedTuple

import pytest
from structlog.testing import capture_logs

from dragoman.errors import DrainingError
from service.decode import Decode, FinishReason
from service.queue.mailbox import Mailbox
from service.registry.catalog import Catalog, Pipeline, ServedModel
from service.registry.health import Health, name_of
from service.registry.models import ModelRegistry
from service.telemetry.metrics import Metrics
from service.text.translator import Translator
from service.wire import SERVICE
from tests.unit.service.played import Engine, intake_of
from tests.unit.service.played_engine import until

PATIENCE_S = 120


class Measured(NamedTuple):
    """What is measured of a queue, given by a test."""

    drained_per_second: float | None = None
    backlog_s: float = 0.0


class PlayedRegistry:
    """A registry, and the catalogs that it published."""

    def __init__(self, manifest, tokenizer) -> None:
        self._manifest, self._tokenizer = manifest, tokenizer
        self.metrics, self.health = Metrics(), Health()
        self.catalogs: list[Catalog] = []
        self.registry = ModelRegistry(self.metrics, self.health, "cpu", self.catalogs.append)

    def model(self, name: str = "en-de", age_s: float = 0.0) -> tuple[ServedModel, Engine]:
        manifest = self._manifest.model_copy(update={"name": name})
        mailbox = Mailbox(100)
        mailbox.register_worker()
        engine, pipeline = Engine(age_s), Pipeline(Translator(manifest, self._tokenizer), mailbox, intake_of(mailbox))
        return ServedModel(manifest, 32, pipeline, engine), engine

    def serves(self, name: str) -> bool:
        return self.health.is_serving(name) is True

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"dragoman_{name}", labels)


@pytest.fixture
async def played(manifest, tokenizer) -> PlayedRegistry:
    return PlayedRegistry(manifest, tokenizer)


async def test_nothing_is_shown_before_all_is_there(played: PlayedRegistry) -> None:
    (first, _), (second, _) = played.model("en-de"), played.model("de-en")
    played.registry.put(first)
    played.registry.put(second)
    assert played.catalogs == []
    assert not played.serves("")
    played.registry.open()
    [catalog] = played.catalogs
    assert list(catalog) == [second, first]
    assert all(map(played.serves, ["", SERVICE, name_of("en-de"), name_of("de-en")]))


async def test_a_model_takes_the_place_of_that_of_its_name_whose_engine_ends(played: PlayedRegistry) -> None:
    (old, old_engine), (new, new_engine) = played.model(), played.model()
    mailbox = old.pipeline.mailbox
    played.registry.put(old)
    played.registry.open()
    played.registry.put(new)
    assert list(played.catalogs[-1]) == [new]
    await until(lambda: old_engine.stopped)
    await until(lambda: played.value("retiring_models") == 0)
    with pytest.raises(DrainingError):
        mailbox.submit([Decode([2], 4)])
    assert not new_engine.stopped
    assert not played.registry.failed.is_set()


async def test_an_engine_goes_when_nobody_needs_it_any_more(played: PlayedRegistry) -> None:
    (old, engine), (new, _) = played.model(), played.model()
    played.registry.put(old)
    played.registry.open()
    with old.held():
        played.registry.put(new)
        assert played.value("retiring_models") == 1
        await asyncio.sleep(0)  # the call that has chosen the old model now brings its segment
        segment = Decode([2], 4)
        old.pipeline.mailbox.submit([segment])
    [taken] = old.pipeline.mailbox.take(0, 1, wait=False)
    assert (taken, old.busy, engine.stopped) == (segment, True, False)
    segment.finish(FinishReason.EOS, 0.0)
    old.pipeline.mailbox.deliver([segment])
    assert not old.busy
    await until(lambda: engine.stopped)


async def test_a_model_that_is_withdrawn_leaves_the_catalog_health_and_metrics(played: PlayedRegistry) -> None:
    (staying, _), (leaving, engine) = played.model("de-en"), played.model("en-de")
    for loaded in (staying, leaving):
        played.registry.put(loaded)
    played.registry.open()
    labels = {"model": "en-de", "precision": "fp32", "device": "cpu"}
    assert played.value("model_info", **labels) == 1
    played.registry.withdraw("en-de")
    assert played.registry.names == ["de-en"]
    assert list(played.catalogs[-1]) == [staying]
    assert played.value("model_info", **labels) is None
    assert played.serves("")
    assert not played.serves(name_of("en-de"))
    await until(lambda: engine.stopped)


async def test_the_queues_and_steps_of_all_that_are_served_are_measured(played: PlayedRegistry) -> None:
    (first, _), (second, _) = played.model("en-de", 1.0), played.model("de-en", 2.0)
    for loaded in (first, second):
        played.registry.put(loaded)
        loaded.pipeline.mailbox.submit([Decode([5, 2], 4)])
    assert (played.value("queue_segments"), played.value("queue_source_tokens")) == (2, 4)
    assert played.registry.step_ages_s() == {"en-de": 1.0, "de-en": 2.0}


async def test_rates_of_models_add_up_and_the_longest_delay_counts(played: PlayedRegistry) -> None:
    (first, _), (second, _) = played.model("en-de"), played.model("de-en")
    for loaded in (first, second):
        played.registry.put(loaded)
    assert (played.value("drain_source_tokens_per_second"), played.value("estimated_delay_seconds")) == (0, 0)
    for loaded, per_second, delay_s in ((first, 10.0, 2.0), (second, 5.0, 6.0)):
        loaded.pipeline.mailbox.admission = Measured(per_second, delay_s)
    assert played.value("drain_source_tokens_per_second") == 15
    assert played.value("estimated_delay_seconds") == 6


async def test_an_engine_that_fails_is_the_end_of_the_server_if_it_serves(played: PlayedRegistry) -> None:
    (old, old_engine), (new, new_engine) = played.model(), played.model()
    played.registry.put(old)
    played.registry.open()
    with capture_logs() as log, old.held():
        played.registry.put(new)
        old_engine.ended.set_exception(RuntimeError("planted"))
        await until(lambda: any(entry["event"] == "an engine ended" for entry in log))
        assert not played.registry.failed.is_set()
        new_engine.ended.set_exception(RuntimeError("planted"))
        await asyncio.wait_for(played.registry.failed.wait(), PATIENCE_S)
    assert [entry["error"] for entry in log if entry["event"] == "an engine ended"] == ["RuntimeError"] * 2


async def test_an_engine_that_simply_ends_has_failed_as_well(played: PlayedRegistry) -> None:
    loaded, engine = played.model()
    played.registry.put(loaded)
    engine.stop()
    await asyncio.wait_for(played.registry.failed.wait(), PATIENCE_S)


async def test_at_the_end_all_engines_are_stopped_in_use_or_not(played: PlayedRegistry) -> None:
    (old, old_engine), (new, new_engine) = played.model(), played.model()
    played.registry.put(old)
    played.registry.open()
    with old.held():
        played.registry.put(new)
        played.registry.close()
        await asyncio.wait_for(played.registry.stop(), PATIENCE_S)
        assert old_engine.stopped
        assert new_engine.stopped
    assert not played.registry.failed.is_set()


async def test_once_closed_calls_are_left_alone(played: PlayedRegistry) -> None:
    (first, _), (second, _) = played.model("en-de"), played.model("de-en")
    played.registry.put(first)
    played.registry.open()
    played.registry.close()
    played.registry.put(second)
    assert len(played.catalogs) == 1
