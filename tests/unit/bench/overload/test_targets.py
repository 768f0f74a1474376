import pytest

from bench.overload.targets import Figures, check

GOOD = Figures(
    peak=100.0,
    steady_p95_ms=40.0,
    storm_goodput=90.0,
    storm_p95_ms=80.0,
    requests=1000,
    neither=0,
    recovery_s=2.0,
    memory_growth=0.05,
)
NAMES = [
    "goodput in the storm",
    "p95 of the accepted",
    "every request",
    "recovery after the storm",
    "memory in the storm",
]


def failed(figures: Figures) -> list[str]:
    return [one[""] for one in check(figures) if not one["passed"]]


def test_a_server_at_every_bound_passes() -> None:
    assert failed(GOOD) == []
    assert [one[""] for one in check(GOOD)] == NAMES


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"storm_goodput": 89.9}, NAMES[0]),
        ({"peak": 0.0}, NAMES[0]),
        ({"storm_p95_ms": 80.1}, NAMES[1]),
        ({"storm_p95_ms": None}, NAMES[1]),
        ({"neither": 1}, NAMES[2]),
        ({"requests": 0}, NAMES[2]),
        ({"recovery_s": 2.1}, NAMES[3]),
        ({"recovery_s": None}, NAMES[3]),
        ({"memory_growth": 0.051}, NAMES[4]),
        ({"memory_growth": None}, NAMES[4]),
    ],
)
def test_each_target_is_missed_alone(change: dict[str, float | None], name: str) -> None:
    assert failed(GOOD._replace(**change)) == [name]  # type: ignore[arg-type]


def test_a_check_says_what_was_asked_and_what_was_measured() -> None:
    goodput, *others = check(GOOD._replace(storm_goodput=50.0))
    assert tuple(goodput.values()) == ("goodput in the storm", "at least 90.0/s, 90% of the peak", "50.0/s, 50%", False)
    assert all(other["passed"] for other in others)
