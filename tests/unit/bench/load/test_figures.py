import json
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.figures import LATE_S, PERCENTILES, summarize
from bench.load.report import to_text
from bench.load.samples import Ending, Samples

LOAD = {
    "mode": "open",
    "unfinished": 0,
    "interrupted": False,
    "max_concurrent_requests": 3,
    "offered_rate": 9.5,
    "request_rate": 10.0,
}


def samples_of(latencies_s: list[float]) -> Samples:
    samples = Samples()
    for latency_s in latencies_s:
        samples.add(1.0, 1.0, 1.0 + latency_s, sentences=2, source_tokens=7, target_tokens=9)
    return samples


def exact_percentile(values: list[float], percentile: int) -> float:
    """Between the two neighbours of its rank, as numpy and most others define it."""
    ordered = sorted(values)
    rank = Fraction(percentile, 100) * (len(ordered) - 1)
    low = int(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + float(rank - low) * (ordered[high] - ordered[low])


@given(st.lists(st.floats(min_value=0.0, max_value=1e3), min_size=1))
def test_percentiles_are_exact_over_all_samples(latencies_s: list[float]) -> None:
    report = summarize(samples_of(latencies_s))
    seen_ms = [(1.0 + latency_s - 1.0) * 1e3 for latency_s in latencies_s]
    for percentile in PERCENTILES:
        assert report[f"p{percentile}_e2el_ms"] == pytest.approx(exact_percentile(seen_ms, percentile), abs=1e-6)
    assert report["max_e2el_ms"] == pytest.approx(max(seen_ms), abs=1e-6)
    assert report["mean_e2el_ms"] == pytest.approx(sum(seen_ms) / len(seen_ms), abs=1e-6)


def test_percentiles_of_one_to_a_hundred_in_any_order() -> None:
    latencies_s = [number / 1000 for number in range(1, 101)]
    random.Random(1).shuffle(latencies_s)
    report = summarize(samples_of(latencies_s))
    figures = [report[f"{name}_e2el_ms"] for name in ("median", "p50", "p90", "p95", "p99", "max")]
    assert figures == pytest.approx([50.5, 50.5, 90.1, 95.05, 99.01, 100.0])


def test_latency_counts_from_when_a_request_was_due() -> None:
    samples = Samples()
    samples.add(1.0, 3.0, 3.5, sentences=1, source_tokens=1, target_tokens=1)
    report = summarize(samples)
    assert report["max_e2el_ms"] == 2500
    assert report["max_send_delay_ms"] == 2000
    assert report["late_sends"] == 1


def test_send_that_is_hardly_late_is_not_called_late() -> None:
    samples = Samples()
    samples.add(1.0, 1.0 + LATE_S / 2, 2.0, sentences=1, source_tokens=1, target_tokens=1)
    assert summarize(samples)["late_sends"] == 0


@pytest.mark.parametrize(
    ("late_s", "took_s", "limited"), [(0.009, 0.01, False), (0.011, 0.02, True), (0.011, 0.2, False), (0.1, 0.2, True)]
)
def test_a_late_generator_is_a_limit_where_that_is_a_good_part_of_the_latency(
    late_s: float, took_s: float, limited: bool
) -> None:
    samples = Samples()
    samples.add(0.0, late_s, late_s + took_s, sentences=1, source_tokens=1, target_tokens=1)
    report = summarize(samples)
    assert report["generator_limited"] is limited
    assert report["p95_send_delay_ms"] == pytest.approx(late_s * 1e3)
    assert ("warning:" in to_text(LOAD | report)) is limited


def test_throughput_is_over_the_time_from_warm_up_to_last_answer() -> None:
    samples = Samples(warmup_s=2.0)
    samples.add(1.9, 1.9, 9.0, sentences=100, source_tokens=100, target_tokens=100)
    for ended_s in (4.0, 2.5):
        samples.add(2.0, 2.0, ended_s, sentences=3, source_tokens=10, target_tokens=20)
    report = summarize(samples)
    assert report["warmup_requests"] == 1
    assert report["duration"] == 2.0
    assert report["request_throughput"] == 1.0
    assert report["sentence_throughput"] == 3.0
    assert report["input_throughput"] == 10.0
    assert report["output_throughput"] == 20.0
    assert report["total_token_throughput"] == 30.0


def test_errors_are_counted_by_code_and_by_reason_and_have_no_latency() -> None:
    samples = samples_of([0.5])
    for reason, message in [("QUEUE_FULL", "first"), ("QUEUE_FULL", "second"), ("QUOTA", "third")]:
        samples.add(1, 1, 90, Ending("RESOURCE_EXHAUSTED", reason, message))
    samples.add(1, 1, 2, Ending("INTERNAL", "INTERNAL", "fourth"))
    report = summarize(samples)
    assert [report[name] for name in ("num_requests", "completed", "rejected", "cancelled", "failed")] == [
        5,
        1,
        3,
        0,
        1,
    ]
    assert report["errors_by_code"] == {"RESOURCE_EXHAUSTED": 3, "INTERNAL": 1}
    assert report["errors"][0] == {
        "code": "RESOURCE_EXHAUSTED",
        "reason": "QUEUE_FULL",
        "count": 2,
        "message": "first",
        "outcome": "rejected",
    }
    assert report["max_e2el_ms"] == 500
    assert "2 RESOURCE_EXHAUSTED QUEUE_FULL, the first: first" in to_text(LOAD | report)


def test_report_of_nothing_is_whole() -> None:
    report = summarize(Samples(warmup_s=5.0))
    assert report.keys() == summarize(samples_of([1.0])).keys()
    assert report["p99_e2el_ms"] is None
    assert report["request_throughput"] == 0.0
    assert "no request was answered" in to_text(LOAD | report)


def test_report_is_json_and_text() -> None:
    report = LOAD | summarize(samples_of([0.010, 0.020]))
    assert json.loads(json.dumps(report)) == report
    text = to_text(report)
    assert "latency p50:            15.0 ms" in text
    assert "offered rate:           9.50 requests/s (asked for 10)" in text
