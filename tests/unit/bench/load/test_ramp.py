from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load import ramp
from bench.load.prepare import LoadSettings
from bench.load.ramp import describe, run_ramp, search, summarize_steps, why_not
from bench.load.report import to_text
from dragoman import errors

TEXTS = ["One two three.", "Four."]


def step(rate: float, p95_ms: float | None, held: bool, why: str | None = None) -> dict[str, Any]:
    return {
        "rate": rate,
        "held": held,
        "why": why,
        "completed": 0 if p95_ms is None else 9,
        "num_requests": 9,
        **{f"{name}_e2el_ms": p95_ms for name in ("p50", "p95", "p99")},
        "timeline": {"t_s": [rate]},
    }


def measured(p95_ms: float, *, limited: bool = False) -> dict[str, Any]:
    report = step(1.0, p95_ms, True)
    for name in ("rate", "held", "why"):
        del report[name]
    return report | {"generator_limited": limited, "p95_send_delay_ms": 12.5, "errors": []}


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (measured(50.0), None),
        (measured(50.1), "p95 50.1 ms, above 50"),
        (measured(50.0, limited=True), None),
        (
            measured(51.0, limited=True),
            "p95 51.0 ms, above 50, but the generator was late: p95 of its lateness 12.5 ms",
        ),
        (
            measured(1.0) | {"num_requests": 12, "errors": [{"code": "RESOURCE_EXHAUSTED", "reason": "QUEUE_FULL"}]},
            "3 of 12 not answered, most RESOURCE_EXHAUSTED QUEUE_FULL",
        ),
        (measured(1.0) | {"num_requests": 0, "completed": 0}, "no request was due"),
    ],
)
def test_why_a_load_did_not_hold(report: dict[str, Any], said: str | None) -> None:
    why = why_not(report, 50.0)
    assert why == said if said is None else str(why).startswith(said)


def test_a_ramp_reports_the_highest_that_held_and_the_next_above() -> None:
    steps = [step(100, 10, True), step(150, 90, False, "slow"), step(120, 20, True), step(130, 60, False, "slower")]
    report = summarize_steps(steps, 50.0)
    assert (report["highest_rate"], report["next_rate"], report["next_why"]) == (120, 130, "slower")
    assert report["timeline"] == {"t_s": [120]}
    assert [one["rate"] for one in report["steps"]] == [100, 150, 120, 130]
    assert not any("timeline" in one for one in report["steps"])


def test_a_ramp_without_a_rate_that_held() -> None:
    report = summarize_steps([step(100, 90, False, "slow"), step(60, None, False, "gone")], 50.0)
    assert (report["highest_rate"], report["next_rate"], report["next_why"]) == (None, 60, "gone")
    assert describe(report["steps"][1]) == "failed: gone"


@given(capacity=st.floats(1.0, 1e4), first_rate=st.floats(20.0, 1e4))
def test_the_highest_rate_is_found_from_anywhere(capacity: float, first_rate: float) -> None:
    """With loads whose outcome is known."""

    async def load(settings: LoadSettings, texts: list[str]) -> dict[str, Any]:
        assert settings.rate is not None
        return measured(10.0 if settings.rate <= capacity else 90.0) | {"interrupted": False}

    said: list[str] = []
    settings = LoadSettings("nowhere:1", duration_s=1e4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ramp, "run_load", load)
        report = run_ramp(settings, TEXTS, first_rate, p95_ms=50.0, log=said.append)
    assert report["highest_rate"] <= capacity < report["next_rate"]
    assert report["next_rate"] <= report["highest_rate"] * (1 + ramp.PRECISION)
    assert report["next_why"] == "p95 90.0 ms, above 50"
    assert len(said) == len(report["steps"])


def test_ctrl_c_ends_a_ramp_with_the_steps_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    async def load(settings: LoadSettings, texts: list[str]) -> dict[str, Any]:
        assert settings.rate is not None
        return measured(10.0) | {"interrupted": settings.rate > 100.0}

    monkeypatch.setattr(ramp, "run_load", load)
    report = run_ramp(LoadSettings("nowhere:1", duration_s=1.0), TEXTS, 80.0, 50.0, lambda line: None)
    assert (report["interrupted"], report["highest_rate"], report["next_rate"]) == (True, 80.0, None)


def test_a_server_that_refuses_everything_holds_no_rate(server: Any) -> None:
    def refuse(number: int) -> None:
        raise errors.DrainingError("bye")

    server.on_request = refuse
    report = run_ramp(LoadSettings(server.address, duration_s=0.2), TEXTS, 80.0, 50.0, lambda line: None)
    assert report["highest_rate"] is None
    assert "none with p95 <= 50 ms" in to_text(report | {"slo": []})


@given(truth=st.floats(1.0, 1e5), first_rate=st.floats(1.0, 1e5))
def test_the_search_ends_just_below_the_truth(truth: float, first_rate: float) -> None:
    found = search(lambda rate: rate <= truth, first_rate)
    assert found <= truth
    assert truth <= found * (1 + ramp.PRECISION) * (1 + 1e-12)
