from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.samples import Ending, Samples, Table
from bench.overload.phases import answers_per_second, arrivals, due_in, in_a_row, p95_ms, recovery_s

parts = st.lists(st.tuples(st.just("x"), st.floats(0.1, 100), st.floats(0.1, 5)), min_size=1, max_size=4)


def table_of(rows: Sequence[tuple[float, float]], refused: Sequence[float] = ()) -> Table:
    """Answered requests as (due, latency), and those that were refused as due."""
    samples = Samples()
    for due_s, latency_s in rows:
        samples.add(due_s, due_s, due_s + latency_s, sentences=1, source_tokens=1, target_tokens=1)
    for due_s in refused:
        samples.add(due_s, due_s, due_s, Ending("RESOURCE_EXHAUSTED", "OVERLOADED", ""))
    return samples.table()


@given(parts, st.integers(0, 1000))
def test_phases_follow_each_other_and_every_request_is_due_in_one(
    parts: list[tuple[str, float, float]], seed: int
) -> None:
    phases = in_a_row(parts)
    assert phases[0].from_s == pytest.approx(0)
    assert all(before.to_s == pytest.approx(after.from_s) for before, after in pairwise(phases))
    due_s = arrivals(phases, seed)
    assert (np.diff(due_s) >= -1e-9).all()
    table = table_of([(due, 0.0) for due in due_s.tolist()])
    # At a border between two phases, rounding may count a request in both or in neither.
    assert sum(len(due_in(table, phase).due_s) for phase in phases) == pytest.approx(len(due_s), abs=1)
    assert (due_s == arrivals(phases, seed)).all()


def test_each_phase_has_its_rate() -> None:
    phases = in_a_row([("before", 100.0, 50.0), ("storm", 500.0, 50.0)])
    due_s = arrivals(phases, 1)
    assert (due_s < 50).sum() / 50 == pytest.approx(100, rel=0.1)
    assert (due_s >= 50).sum() / 50 == pytest.approx(500, rel=0.1)


def test_answers_count_where_they_come() -> None:
    _, storm = in_a_row([("before", 1.0, 2.0), ("storm", 1.0, 2.0)])
    table = table_of([(1.0, 0.5), (1.0, 1.5), (3.0, 0.5), (3.0, 5.0)], refused=[3.0])
    assert answers_per_second(table, storm) == 1.0
    assert len(due_in(table, storm).due_s) == 3


def test_p95_is_of_the_answered() -> None:
    assert p95_ms(table_of([(0.0, 0.1), (0.0, 0.1)], refused=[0.0])) == pytest.approx(100)
    assert p95_ms(table_of([], refused=[0.0])) is None


STEADY = [index / 20 for index in range(200)]  # 20 a second, for 10 s


@pytest.mark.parametrize("slow_s", [0.0, 1.0, 3.0])
def test_recovery_is_when_nine_of_ten_are_fast_again(slow_s: float) -> None:
    rows = [(due_s, 0.5 if 2.0 <= due_s < 2.0 + slow_s else 0.01) for due_s in STEADY]
    found = recovery_s(table_of(rows), end_s=2.0, bound_ms=50.0)
    assert found is not None
    # The second may begin while its first tenth is still slow.
    assert slow_s - 0.2 <= found <= slow_s


def test_who_refuses_has_not_recovered() -> None:
    fast = [(due_s, 0.01) for due_s in STEADY if due_s < 5.0]
    refused = [due_s for due_s in STEADY if due_s >= 5.0]
    assert recovery_s(table_of(fast, refused), end_s=5.0, bound_ms=50.0) is None


def test_one_slow_request_in_twenty_is_steady() -> None:
    rows = [(due_s, 0.5 if index % 20 == 0 else 0.01) for index, due_s in enumerate(STEADY)]
    assert recovery_s(table_of(rows), end_s=2.0, bound_ms=50.0) == 0.0
