import pytest
from prometheus_client import generate_latest

from bench.metrics_page import Page, read
from service.telemetry.metrics import Metrics


def page() -> Page:
    metrics = Metrics()
    metrics.of("en-de").target_tokens_total.inc(6)
    metrics.of("en-fr").target_tokens_total.inc(4)
    return Page.parse(generate_latest(metrics.registry).decode())


def test_samples_are_added_up_over_the_labels_that_are_not_named() -> None:
    assert page().total("target_tokens_total") == 10
    assert page().total("target_tokens_total", model="en-de") == 6
    assert page().total("target_tokens_total", model="de-en") == 0
    assert page().total("no_such_metric") == 0


def test_sums_are_of_all_names() -> None:
    assert page().sums()["dragoman_target_tokens_total"] == 10
    assert page().sums()["process_cpu_seconds_total"] > 0


def test_another_format_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a page"):
        Page.parse("<html>not a page</html>")


def test_nobody_at_the_address_is_an_error() -> None:
    with pytest.raises(OSError, match="refused"):
        read("127.0.0.1:1", 1.0)
