"""Fleets made of figures as they are measured."""

import pytest

from bench.replicas.balancing import BALANCERS
from bench.replicas.measure import SLOTS, Measured, Occupancy, Scale, Sentence
from bench.replicas.report import as_markdown
from bench.replicas.scenarios import kind_of, steady, storms

MEASURED = Measured(
    sentences=[Sentence(8, 0.018), Sentence(10, 0.020), Sentence(12, 0.022)],
    occupancies=[Occupancy(1, 0.8, 0.020), Occupancy(8, 7.0, 0.012), Occupancy(48, 40.0, 0.010)],
    refusal_s=0.001,
    scales=[Scale(1, 0.010, 90.0), Scale(2, 0.010, 180.0)],
)


def test_rates_are_those_that_were_measured() -> None:
    kind = kind_of(MEASURED)
    assert kind.rate(7) == pytest.approx(1 / 0.012)
    assert 50 < kind.rate(1) < kind.rate(2) < kind.rate(SLOTS) <= 100
    assert kind.rate(10 * SLOTS) == kind.peak


def test_a_steady_load_is_answered() -> None:
    rows = list(steady(MEASURED, [1, 4], seed=0))
    assert [(row.replicas, row.balancer) for row in rows] == [(size, name) for size in (1, 4) for name in BALANCERS]
    assert all(row.slow == 0 and row.refused == 0 and 0.02 < row.p50_s < row.p95_s < 1 for row in rows)
    with_one, with_four = (min(row.p95_s for row in rows if row.replicas == size) for size in (1, 4))
    assert with_four < with_one


def test_where_some_are_slow_calls_that_are_spread_evenly_wait_for_them() -> None:
    p95_s = {row.balancer: row.p95_s for row in steady(MEASURED, [10], seed=0, slow_share=0.1)}
    assert p95_s["round robin"] > 2 * p95_s["two choices"]
    assert p95_s["round robin"] > 2 * p95_s["least requests"]


def test_in_a_storm_what_is_too_much_is_refused() -> None:
    for row in storms(MEASURED, [3], seed=0):
        assert 0.5 < row.goodput < 1
        assert 0.5 < row.refused < 0.9
        assert row.p95_s < 2


def test_the_report_has_every_row() -> None:
    calm, wild = list(steady(MEASURED, [2], seed=0)), list(storms(MEASURED, [2], seed=0))
    lines = as_markdown(MEASURED, calm, wild).splitlines()
    assert "| 2 | 10.00 | 180 |" in lines
    assert "| 8 | 7.0 | 12.00 |" in lines
    assert len([line for line in lines if line.startswith("| 2 |") and "robin" in line]) == 4
