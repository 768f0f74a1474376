from argparse import ArgumentTypeError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.figures import summarize
from bench.load.samples import Samples
from bench.load.slo import MEASURES, Target, judge, to_line

amounts = st.floats(0, 1e6)


@given(st.sampled_from(sorted(MEASURES)), amounts, amounts)
def test_a_target_is_met_on_its_side_and_at_its_bound(name: str, value: float, measured: float) -> None:
    [verdict] = judge({MEASURES[name].field: measured}, [Target.parse(f"{name}={value!r}")])
    assert verdict["met"] == (measured <= value if MEASURES[name].at_most else measured >= value)
    [verdict] = judge({MEASURES[name].field: value}, [Target(name, value)])
    assert verdict["met"]


@pytest.mark.parametrize("report", [{}, {"p95_e2el_ms": None}])
def test_what_was_not_measured_is_missed(report: dict[str, None]) -> None:
    [verdict] = judge(report, [Target("p95_ms", 50.0)])
    assert not verdict["met"]
    assert to_line(verdict) == "missed: p95_ms nothing was measured, at most 50"


def test_every_measure_of_one_rate_is_in_its_report() -> None:
    samples = Samples()
    samples.add(1, 1, 2, sentences=1, source_tokens=1, target_tokens=1, first_text_s=1.5)
    fields = {measure.field for measure in MEASURES.values() if not measure.of_ramp}
    assert fields <= summarize(samples).keys()


@pytest.mark.parametrize("text", ["", "p95_ms", "p95_ms=", "p95_ms=x", "p95_ms=-1", "p95_ms=nan", "goodput=inf", "x=1"])
def test_other_targets_are_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"NAME=VALUE|must be a number from 0 on"):
        Target.parse(text)
