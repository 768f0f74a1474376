from typing import Any

import pytest

from bench.load.figures import summarize
from bench.load.report import cache_share, outcomes, to_text, warnings
from bench.load.samples import Ending, Samples
from bench.load.slo import Target, judge


def report(samples: Samples, **more: Any) -> dict[str, Any]:
    """Of a closed loop."""
    return {
        "mode": "closed",
        "interrupted": False,
        "max_concurrent_requests": 2,
        "offered_rate": None,
        "unfinished": 0,
        **summarize(samples),
        **more,
    }


@pytest.fixture
def samples() -> Samples:
    seen = Samples()
    for number in range(3):
        seen.add(number, number, number + 0.5, sentences=1, source_tokens=4, target_tokens=5)
    seen.add(3.0, 3.0, 3.1, Ending("RESOURCE_EXHAUSTED", "QUEUE_FULL", "full"))
    return seen


def test_every_line_is_a_name_and_a_figure(samples: Samples) -> None:
    lines = dict(line.split(":", 1) for line in to_text(report(samples)).splitlines())
    assert lines["requests"].strip() == "3 answered, 1 rejected"
    assert lines["rejected"].strip() == "1 RESOURCE_EXHAUSTED QUEUE_FULL, the first: full"
    assert lines["latency p95"].strip() == "500.0 ms"
    assert "offered rate" not in lines


def test_a_load_without_an_answer_has_no_latency() -> None:
    assert "no request was answered" in to_text(report(Samples()))
    assert outcomes(report(Samples())) == "0 answered"


def test_a_ramp_that_held_nothing_says_so() -> None:
    ramp = {"mode": "ramp", "steps": [], "highest_rate": None, "next_rate": None, "p95_target_ms": 50.0}
    assert to_text(ramp).splitlines() == [
        "highest rate:           none with p95 <= 50 ms",
        "requests:               none",
    ]


def test_targets_that_were_met_are_lines_too(samples: Samples) -> None:
    told = report(samples)
    verdicts = judge(told, [Target("error_rate", 0.5), Target("p95_ms", 1.0)])
    assert (
        to_text({**told, "slo": verdicts}).splitlines()[-1]
        == "target:                 met: error_rate 0.25, at most 0.5"
    )


@pytest.mark.parametrize(("share", "warned"), [(None, False), (0.49, False), (0.5, True)])
def test_a_load_on_the_result_cache_is_warned_of(samples: Samples, share: float | None, warned: bool) -> None:
    told = report(samples, result_cache_share=share)
    assert bool(warnings(told)) == warned
    assert ("warning:" in to_text(told)) == warned
    assert cache_share(told) == ("unknown" if share is None else f"{100 * share:.0f} %")


def test_the_flag_that_tells_more_is_named_where_it_was_not_given(samples: Samples) -> None:
    assert cache_share(report(samples)) == "unknown, only --metrics-address tells"
