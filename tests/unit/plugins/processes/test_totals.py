"""The metrics of several processes added up, on the metrics of real servers."""

import json
import math
import mmap
import subprocess
import sys
from pathlib import Path

from prometheus_client import generate_latest

from plugins.processes.totals import Page, Totals, page_from_json, page_of
from service.telemetry.metrics import Metrics

HOLD = """
import mmap, sys
with open(sys.argv[1], "rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as held:
    any(held[::mmap.PAGESIZE])
    print("held", flush=True)
    sys.stdin.read()
"""


def page(metrics: Metrics, pid: int) -> Page:
    """As it comes over a socket."""
    return page_from_json(json.loads(json.dumps(page_of(metrics.registry, pid))))


def total(totals: Totals, pages: dict[int, Page], name: str, **labels: str) -> float:
    """One sample of the sum, which must be there once."""
    [value] = [
        sample.value
        for metric in totals.add(pages)
        for sample in metric.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return value


def test_one_process_has_the_page_that_it_would_have_alone() -> None:
    metrics = Metrics()
    metrics.model_info.labels("en-de").info({"precision": "int8", "device": "cpu"})
    metrics.of("en-de").queue_duration_seconds.observe(0.1)
    metrics.requests_total.labels("TranslateText", "OK", "grpc").inc()

    class Registry:
        def collect(self):
            return Totals().add({0: page(metrics, 1)})

    def lines(registry: object) -> list[str]:
        text = generate_latest(registry).decode()  # type: ignore[arg-type]
        return [line for line in text.splitlines() if "process_" not in line]

    assert lines(Registry()) == lines(metrics.registry)


def test_counters_histograms_and_gauges_add_up() -> None:
    ours, theirs = Metrics(), Metrics()
    for metrics, count in ((ours, 1), (theirs, 2)):
        metrics.of("en-de").slots.inc(32 * count)
        for _ in range(count):
            metrics.requests_total.labels("TranslateText", "OK", "grpc").inc()
            metrics.of("en-de").queue_duration_seconds.observe(0.1)
    theirs.requests_total.labels("ListModels", "OK", "grpc").inc()
    totals, pages = Totals(), {0: page(ours, 1), 1: page(theirs, 2)}
    assert total(totals, pages, "dragoman_requests_total", method="TranslateText") == 3
    assert total(totals, pages, "dragoman_requests_total", method="ListModels") == 1
    assert total(totals, pages, "dragoman_slots", model="en-de") == 96
    assert total(totals, pages, "dragoman_queue_duration_seconds_bucket", model="en-de", le="+Inf") == 3
    assert math.isclose(total(totals, pages, "dragoman_queue_duration_seconds_sum", model="en-de"), 0.3)


def test_what_is_no_amount_is_not_added_up() -> None:
    ours, theirs = Metrics(), Metrics()
    for metrics, age_s in ((ours, 3.0), (theirs, 7.0)):
        metrics.model_info.labels("en-de").info({"precision": "int8", "device": "cpu"})
        metrics.serving.set_function(lambda age_s=age_s: age_s > 5)
        metrics.step_age_seconds.set_function(lambda age_s=age_s: age_s)
        metrics.files_in_force.labels("tls").set(1)
        metrics.bundle_errors.set(1)
        metrics.drain_source_tokens_per_second.set(10)
        metrics.estimated_delay_seconds.set(age_s)
    totals, pages = Totals(), {0: page(ours, 1), 1: page(theirs, 2)}
    assert total(totals, pages, "dragoman_model_info", model="en-de") == 1
    assert total(totals, pages, "dragoman_serving") == 0
    assert total(totals, pages, "dragoman_step_age_seconds") == 7
    assert total(totals, pages, "dragoman_estimated_delay_seconds") == 7
    assert total(totals, pages, "dragoman_files_in_force", files="tls") == 1
    assert total(totals, pages, "dragoman_bundle_errors") == 1
    assert total(totals, pages, "dragoman_drain_source_tokens_per_second") == 20
    first = min(total(Totals(), {0: one}, "process_start_time_seconds") for one in pages.values())
    assert total(totals, pages, "process_start_time_seconds") == first


def test_memory_that_processes_share_is_added_up_once(tmp_path: Path) -> None:
    size = 64 * 2**20
    file = tmp_path / "weights"
    file.write_bytes(bytes(size))
    command = [sys.executable, "-c", HOLD, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ) as held:
            assert not any(held[:: mmap.PAGESIZE])
            metrics = Metrics()
            resident = metrics.registry.get_sample_value("process_resident_memory_bytes")
            assert resident is not None
            shown = total(Totals(), {0: page(metrics, 1)}, "process_resident_memory_bytes")
            assert 0 < shown < resident - size / 3
        other.stdin.close()


def test_what_a_process_had_counted_stays_after_its_end() -> None:
    ours, theirs, next_one = Metrics(), Metrics(), Metrics()
    for metrics in (ours, theirs):
        metrics.requests_total.labels("TranslateText", "OK", "grpc").inc(5)
        metrics.of("en-de").slots.inc(32)
    ours.requests_total.labels("ListModels", "OK", "grpc").inc()
    totals = Totals()
    both = {0: page(ours, 1), 1: page(theirs, 2)}
    assert total(totals, both, "dragoman_requests_total", method="TranslateText") == 10
    silent = {1: page(theirs, 2)}
    for _ in range(2):
        assert total(totals, silent, "dragoman_requests_total", method="TranslateText") == 10
        assert total(totals, silent, "dragoman_slots") == 32
    next_one.requests_total.labels("TranslateText", "OK", "grpc").inc()
    for pid in (3, 3, 4):
        after = {0: page(next_one, pid), 1: page(theirs, 2)}
        value = total(totals, after, "dragoman_requests_total", method="TranslateText")
        assert value == (11 if pid == 3 else 12)
        assert total(totals, after, "dragoman_requests_total", method="ListModels") == 1
