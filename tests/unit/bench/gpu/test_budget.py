import pytest

from bench.gpu.budget import Clock, limit_s


def test_the_time_left_is_shared_by_the_parts_that_follow() -> None:
    assert limit_s(100.0, [20, 60, 20]) == pytest.approx(20.0)
    assert limit_s(90.0, [60, 20]) == pytest.approx(67.5)  # the first took half of its share
    assert limit_s(33.0, [20]) == pytest.approx(33.0)


def test_no_time_left_is_none_for_the_next() -> None:
    assert limit_s(-5.0, [20, 60]) == 0.0


def test_all_rounds_take_place_while_there_is_time() -> None:
    assert list(Clock.of(600.0).rounds([1, 2, 4])) == [1, 2, 4]


def test_no_round_begins_behind_the_end() -> None:
    assert list(Clock.of(-1.0).rounds([1, 2])) == []


def test_a_round_that_would_take_too_long_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr("bench.gpu.budget.time.monotonic", lambda: now_s)
    taken = []
    for number in Clock.of(100.0).rounds([1, 2, 3, 4]):
        taken.append(number)
        now_s += 10.0 * 2**number  # 20, 40: 40 are left, and the next takes 60 or more
    assert taken == [1, 2]
