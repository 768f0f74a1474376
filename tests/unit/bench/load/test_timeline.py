import math

from hypothesis import given
from hypothesis import strategies as st

from bench.load.samples import Ending, Samples
from bench.load.timeline import bin_width_s, timeline

requests = st.lists(
    st.tuples(st.floats(0, 50), st.floats(0, 20), st.sampled_from(["", "QUEUE_FULL", "INTERNAL"])), max_size=60
)


@given(requests)
def test_every_request_is_in_one_interval(rows: list[tuple[float, float, str]]) -> None:
    samples = Samples(warmup_s=5.0)
    for due_s, latency_s, reason in rows:
        times = (due_s + 5.0, due_s + 5.0, due_s + 5.0 + latency_s)
        if reason:
            code = "RESOURCE_EXHAUSTED" if reason == "QUEUE_FULL" else "INTERNAL"
            samples.add(*times, Ending(code, reason, ""))
        else:
            samples.add(*times, sentences=1, source_tokens=1, target_tokens=1)
    lines = timeline(samples.table())
    columns = [lines[name] for name in ("t_s", "offered", "answered", "rejected", "cancelled", "failed", "p50_ms")]
    assert len({len(column) for column in columns}) == 1
    by_reason = {reason: sum(row[2] == reason for row in rows) for reason in ("", "QUEUE_FULL", "INTERNAL")}
    assert sum(lines["offered"]) == len(rows)
    assert sum(lines["answered"]) == by_reason[""]
    assert sum(lines["rejected"]) == sum(lines["errors"].get("RESOURCE_EXHAUSTED", [])) == by_reason["QUEUE_FULL"]
    assert sum(lines["failed"]) == sum(lines["errors"].get("INTERNAL", [])) == by_reason["INTERNAL"]


def test_latencies_are_where_requests_were_due_and_answers_where_they_came() -> None:
    samples = Samples()
    for due_s, ended_s in ((0.5, 0.75), (0.75, 2.75), (2.25, 2.5)):
        samples.add(due_s, due_s, ended_s, sentences=1, source_tokens=1, target_tokens=1)
    lines = timeline(samples.table(), width_s=1.0)
    assert (lines["bin_s"], lines["t_s"]) == (1.0, [0.0, 1.0, 2.0])
    assert lines["offered"] == [2, 0, 1]
    assert lines["answered"] == [1, 0, 2]
    assert lines["p50_ms"] == [1125.0, None, 250.0]


@given(st.floats(0, 8 * 3600), st.integers(0, 10_000))
def test_intervals_are_few_and_fewer_where_there_are_few_requests(duration_s: float, requests: int) -> None:
    bins = math.ceil(duration_s / bin_width_s(duration_s, requests))
    assert bins <= 40
    assert bins <= max(8, requests / 20)


def test_a_timeline_of_nothing_is_empty() -> None:
    assert timeline(Samples().table())["t_s"] == []
