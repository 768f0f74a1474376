from hypothesis import given
from hypothesis import strategies as st

from service.engine.isolation import run_isolated

START, COUNT = 3, 40


class PlantedError(Exception):
    """What a run raises over what is poisonous."""


@given(count=st.integers(1, COUNT), poisonous=st.sets(st.integers(START, START + COUNT)))
def test_who_fails_alone_is_found_and_all_others_are_run(count: int, poisonous: set[int]) -> None:
    done: set[int] = set()
    failures: list[Exception] = []

    def run(start: int, stop: int) -> None:
        assert START <= start < stop <= START + count
        if poisonous & set(range(start, stop)):
            raise PlantedError
        done.update(range(start, stop))

    everyone = set(range(START, START + count))
    assert run_isolated(run, START, START + count, failures.append) == sorted(poisonous & everyone)
    assert done == everyone - poisonous
    assert len(failures) < 2 * count
    assert bool(failures) is bool(poisonous & everyone)


def test_without_a_failure_there_is_one_run() -> None:
    runs: list[tuple[int, int]] = []
    assert run_isolated(lambda *part: runs.append(part), 0, 32, lambda error: None) == []
    assert runs == [(0, 32)]


def test_one_of_many_costs_two_runs_a_halving() -> None:
    runs: list[tuple[int, int]] = []

    def run(start: int, stop: int) -> None:
        runs.append((start, stop))
        if start <= 5 < stop:
            raise PlantedError

    assert run_isolated(run, 0, 32, lambda error: None) == [5]
    assert len(runs) == 1 + 2 * 5


def test_what_does_not_fail_again_is_noted_and_harms_nobody() -> None:
    failures: list[Exception] = []

    def run(start: int, stop: int) -> None:
        if stop - start > 1:
            raise PlantedError(start, stop)

    assert run_isolated(run, 0, 4, failures.append) == []
    assert [failure.args for failure in failures] == [(0, 4), (0, 2), (2, 4)]
