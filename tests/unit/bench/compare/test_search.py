import pytest

from bench.compare.search import Ratio, Trial, best_of, survivors


def test_best_is_the_largest_or_the_smallest_and_of_equals_the_first() -> None:
    trials = [Trial({"n": 1}, 3.0), Trial({"n": 2}, 5.0), Trial({"n": 3}, 5.0), Trial({"n": 4}, 3.0)]
    assert best_of(trials, higher_is_better=True).settings == {"n": 2}
    assert best_of(trials, higher_is_better=False).settings == {"n": 1}


def test_ratio_is_taken_round_by_round() -> None:
    # The machine was half as fast in the last round, for both: the ratio does not see it.
    ratio = Ratio.of([10.0, 12.0, 5.0], [10.0, 10.0, 5.0])
    assert (ratio.median, ratio.low, ratio.high) == (1.0, 1.0, 1.2)
    assert str(ratio) == "1.00 (1.00 to 1.20)"


def test_ratio_needs_a_pair_for_each_round() -> None:
    with pytest.raises(ValueError, match="zip"):
        Ratio.of([1.0, 2.0], [1.0])


def test_the_last_on_the_ladder_wins() -> None:
    capacities = {"weak": 110.0, "strong": 290.0, "middle": 205.0}
    tried = []

    def holds(name: str, rate: float) -> bool:
        tried.append((name, round(rate)))
        return rate <= capacities[name]

    assert survivors(list(capacities), holds, 100.0, 2.0) == ("strong", 200.0)
    assert tried == [
        ("weak", 100), ("strong", 100), ("middle", 100),
        ("weak", 200), ("strong", 200), ("middle", 200),
        ("strong", 400), ("middle", 400),
    ]  # fmt: skip


def test_who_failed_a_rung_is_not_asked_again() -> None:
    tried = []

    def holds(name: str, rate: float) -> bool:
        tried.append(name)
        return rate <= {"weak": 15.0, "strong": 45.0}[name]

    survivors(["weak", "strong"], holds, 10.0, 2.0)
    assert tried == ["weak", "strong", "weak", "strong", "strong", "strong"]


def test_the_ladder_goes_down_until_one_holds() -> None:
    assert survivors([7.0, 13.0], lambda capacity, rate: rate <= capacity, 100.0, 2.0) == (13.0, 12.5)
