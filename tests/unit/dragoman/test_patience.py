import pytest

from dragoman import (
    ConcurrencyLimitedError,
    DragomanError,
    DrainingError,
    InternalError,
    OverloadedError,
    QueueFullError,
    RateLimitedError,
)
from dragoman.patience import Patience


@pytest.mark.parametrize("retries", [0, 3, 5])
def test_patience_with_a_server_that_is_away_ends_after_failures_in_a_row(retries: int) -> None:
    patience, error = Patience(None, retries=retries), DrainingError("draining", retry_delay_s=0.0)
    for _ in range(2):
        pauses = [patience.pause_s(error) for _ in range(retries)]
        assert pauses == sorted(pauses)
        patience.answered()
    for _ in range(retries):
        patience.pause_s(error)
    with pytest.raises(DrainingError):
        patience.pause_s(error)


def test_patience_waits_as_long_as_the_server_asks() -> None:
    assert Patience(None, retries=1).pause_s(DrainingError("draining", retry_delay_s=5.0)) >= 4.0
    assert Patience(None).left_s is None
    assert Patience(0.0).left_s == 0.0


@pytest.mark.parametrize("kind", [RateLimitedError, ConcurrencyLimitedError, QueueFullError, OverloadedError])
def test_a_busy_server_is_waited_for_where_asked_and_never_less_than_it_asks(kind: type[DragomanError]) -> None:
    with pytest.raises(kind):
        Patience(None, retries=3).pause_s(kind("busy"))
    patience = Patience(None, wait_when_busy=True)
    pauses_s = [patience.pause_s(kind("busy", retry_delay_s=0.2)) for _ in range(2_000)]
    assert min(pauses_s) >= 0.2
    assert 30.0 <= pauses_s[-1] <= 36.0  # longer each time, up to half a minute
    assert patience.pause_s(kind("busy", retry_delay_s=100.0)) >= 100.0
    patience.answered()
    assert patience.pause_s(kind("busy", retry_delay_s=0.2)) < 0.25


def test_no_pause_ends_after_the_deadline() -> None:
    error = QueueFullError("full", retry_delay_s=1e3)
    assert Patience(1e6, wait_when_busy=True).pause_s(error) >= 1e3
    with pytest.raises(QueueFullError):
        Patience(1e3, wait_when_busy=True).pause_s(error)


def test_a_timeout_that_no_float_holds_is_named() -> None:
    with pytest.raises(ValueError, match=r"^timeout_s must be"):
        Patience(10**400)
    with pytest.raises(TypeError):
        Patience("5")  # type: ignore[arg-type]


def test_nothing_else_is_tried_again() -> None:
    with pytest.raises(InternalError):
        Patience(None, retries=3, wait_when_busy=True).pause_s(InternalError("broken"))
