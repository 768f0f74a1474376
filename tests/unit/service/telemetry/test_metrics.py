import itertools
from contextlib import suppress

import pytest
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from service.decode import FinishReason
from service.telemetry.metrics import LATENCY_BUCKETS_S, SEGMENT_ENDS, Metrics

PROMISED = {
    "model_loads",
    "model_evictions",
    "model_memory_bytes",
    "model_memory_budget_bytes",
    "model_waiting_calls",
    "model_wait_duration_seconds",
    "requests",
    "request_duration_seconds",
    "time_to_first_token_seconds",
    "queue_duration_seconds",
    "encode_duration_seconds",
    "decode_step_duration_seconds",
    "decode_batch_slots",
    "slots_active",
    "slots",
    "queue_segments",
    "queue_source_tokens",
    "queue_priority_source_tokens",
    "drain_source_tokens_per_second",
    "estimated_delay_seconds",
    "source_tokens",
    "target_tokens",
    "encoder_padding_tokens",
    "unknown_pieces",
    "length_ratio",
    "quality_estimate",
    "kv_cache_bytes",
    "rejected",
    "detected_texts",
    "cancelled_segments",
    "cancelled_tokens_saved",
    "searched_segments",
    "glossary_segments",
    "glossary_misses",
    "segments",
    "failed_runs",
    "step_age_seconds",
    "stalled_steps",
    "encoder_memory_cache_hits",
    "encoder_memory_cache_misses",
    "encoder_memory_cache_evictions",
    "encoder_memory_cache_bytes",
    "encoder_memory_cache_saved_seconds",
    "result_cache_hits",
    "result_cache_misses",
    "result_cache_bytes",
    "result_cache_saved_seconds",
    "coalesced_segments",
    "coalesced_saved_seconds",
    "model",
    "model_reloads",
    "bundle_errors",
    "retiring_models",
    "document_failures",
    "api_key_requests",
    "files_in_force",
    "processes",
    "serving",
    "closed_connections",
    "log_lines_dropped",
}


def page(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def test_the_page_is_openmetrics_with_all_promised_names() -> None:
    families = {family.name: family for family in text_string_to_metric_families(page(Metrics()))}
    ours = {name.removeprefix("dragoman_") for name in families if name.startswith("dragoman_")}
    assert ours == PROMISED
    assert all(family.documentation for family in families.values())
    assert "process_resident_memory_bytes" in families


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_attributes_are_named_like_the_metrics(name: str) -> None:
    suffix = {"counter": "_total", "info": "_info"}
    types = {family.name: family.type for family in text_string_to_metric_families(page(Metrics()))}
    assert hasattr(Metrics(), name + suffix.get(types[f"dragoman_{name}"], ""))


def test_latency_buckets_grow_by_half_from_half_a_millisecond_to_30_s() -> None:
    assert LATENCY_BUCKETS_S[0] == 0.0005
    assert 20 < LATENCY_BUCKETS_S[-1] <= 30
    for small, large in itertools.pairwise(LATENCY_BUCKETS_S):
        assert large / small == pytest.approx(1.5, rel=1e-3)


def test_labels_are_from_closed_sets_only() -> None:
    metrics = Metrics()
    metrics.requests_total.labels("TranslateText", "OK", "grpc").inc()
    metrics.request_duration_seconds.labels("TranslateText", "grpc").observe(0.1)
    metrics.rejected_total.labels("QUEUE_FULL").inc()
    metrics.detected_texts_total.labels("de").inc()
    metrics.model_reloads_total.labels("en-de", "loaded").inc()
    metrics.of("en-de").length_ratio.observe(1.0)
    metrics.model_info.labels("en-de").info({"precision": "int8", "device": "cpu"})
    families = text_string_to_metric_families(page(metrics))
    labels = {label for family in families for sample in family.samples for label in sample.labels}
    of_models = {"model", "graph", "outcome", "precision", "device", "language"}
    assert labels == {"method", "protocol", "code", "reason", "le"} | of_models


def test_queue_gauges_are_read_at_the_scrape() -> None:
    metrics = Metrics()
    waiting = [3.0]
    metrics.queue_segments.set_function(lambda: waiting[0])
    assert "dragoman_queue_segments 3.0" in page(metrics)
    waiting[0] = 5.0
    assert "dragoman_queue_segments 5.0" in page(metrics)


def test_a_model_that_is_served_no_more_is_not_described() -> None:
    metrics = Metrics()
    for model in ("en-de", "de-en"):
        metrics.model_info.labels(model).info({"precision": "int8", "device": "cpu"})
    metrics.model_info.remove("en-de")
    assert 'model="en-de"' not in page(metrics)
    assert 'model="de-en"' in page(metrics)


def test_models_are_described() -> None:
    metrics = Metrics()
    metrics.model_info.labels("en-de").info({"precision": "int8", "device": "cpu"})
    assert 'dragoman_model_info{device="cpu",model="en-de",precision="int8"} 1.0' in page(metrics)


def test_two_servers_in_one_process_do_not_share_metrics() -> None:
    first, second = Metrics(), Metrics()
    first.of("en-de").source_tokens_total.inc(7)
    assert 'dragoman_source_tokens_total{model="en-de"} 7.0' in page(first)
    assert second.of("en-de") is second.of("en-de")
    assert 'dragoman_source_tokens_total{model="en-de"} 0.0' in page(second)


def test_the_metrics_of_a_model_are_all_those_that_have_the_label() -> None:
    own = vars(Metrics().of("en-de"))
    labelled = {name for name, metric in vars(Metrics()).items() if has_label(metric, "model")}
    assert set(own) == labelled - {
        "model_info",
        "model_reloads_total",
        "model_loads_total",
        "model_evictions_total",
        "model_memory_bytes",
    }


def has_label(metric: object, label: str) -> bool:
    for others in ((), ("graph",), ("reason",), ("outcome",)):
        # What is no metric has no labels; a metric takes its own ones and no others.
        with suppress(AttributeError, ValueError):
            metric.labels(**dict.fromkeys((label, *others), "x"))
            return True
    return False


def test_a_total_is_over_all_models_but_those_of_other_labels() -> None:
    metrics = Metrics()
    metrics.of("en-de").segments_total["EOS"].inc(2)
    metrics.of("en-de").segments_total["LENGTH"].inc(3)
    metrics.of("de-en").segments_total["EOS"].inc(5)
    assert metrics.total("segments_total", reason="EOS") == 7
    assert metrics.total("segments_total", model="en-de") == 5
    assert metrics.total("segments_total", model="fr-en") == 0


def test_every_end_of_a_segment_has_its_series_from_the_start() -> None:
    assert set(SEGMENT_ENDS) == {reason.name for reason in FinishReason} | {"INTERNAL"}
