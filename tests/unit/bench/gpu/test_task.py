import time
from dataclasses import replace

import pytest

from bench.gpu.task import Task, left_out, slot_counts


def test_all_rounds_take_place_while_there_is_time(task: Task) -> None:
    assert list(task.rounds([1, 2, 4])) == [1, 2, 4]


def test_no_round_begins_behind_the_end(task: Task) -> None:
    assert list(replace(task, end_s=time.monotonic() - 1.0).rounds([1, 2])) == []


def test_a_round_that_would_take_too_long_does_not_begin(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr("bench.gpu.task.time.monotonic", lambda: now_s)
    taken = []
    for number in replace(task, end_s=100.0).rounds([1, 2, 3, 4]):
        taken.append(number)
        now_s += 10.0 * 2**number  # 20, 40: 40 are left, and the next takes 60 or more
    assert taken == [1, 2]


@pytest.mark.parametrize(("most", "counts"), [(1, [1]), (4, [1, 2, 4]), (1000, [2**power for power in range(10)])])
def test_slot_counts_double(most: int, counts: list[int]) -> None:
    assert slot_counts(most) == counts


def test_what_is_left_out_is_named() -> None:
    assert left_out("slots", [512, 2]) == "slots 2, 512"
    assert left_out("slots", []) is None
