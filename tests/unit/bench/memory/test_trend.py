import pytest

from bench.memory import Resident, growth, share_grown


def test_growth_counts_after_the_first_tenth_only() -> None:
    work = list(range(50, 1_001, 50))
    assert growth(work, [100.0 if done < 100 else 300.0 for done in work], per=1000) == pytest.approx(0.0, abs=1e-6)


def test_growth_is_for_an_amount_of_work() -> None:
    work = list(range(1_000, 20_001, 1_000))
    assert growth(work, [done / 1_000 for done in work], per=100_000) == pytest.approx(100.0)


@pytest.mark.parametrize("work", [[], [5], [1, 100]])
def test_growth_of_less_than_two_samples_is_not_known(work: list[float]) -> None:
    assert growth(work, [1.0] * len(work), per=1) is None


def test_memory_that_stays_has_no_growth_whatever_came_first() -> None:
    filling = [Resident(float(at_s), 100.0 + 10 * min(at_s, 10)) for at_s in range(41)]
    assert share_grown(filling, 0.0, 40.0) == pytest.approx(0)


def test_growth_is_between_the_second_and_the_last_quarter() -> None:
    leaking = [Resident(float(at_s), 100.0 + at_s) for at_s in range(40)]
    assert share_grown(leaking, 0.0, 40.0) == pytest.approx(134.5 / 114.5 - 1)


def test_growth_that_was_not_seen_is_not_known() -> None:
    assert share_grown([Resident(1.0, 100.0)], 0.0, 40.0) is None
