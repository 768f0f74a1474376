import pytest

from dragoman import (
    ConcurrencyLimitedError,
    DragomanError,
    DrainingError,
    InternalError,
    LoadingError,
    ModelUnavailableError,
    OverloadedError,
    QueueFullError,
    RateLimitedError,
    ServerUnavailableError,
)
from dragoman.patience import Patience


@pytest.mark.parametrize("retries", [0, 3, 5])
def test_patience_with_a_server_that_is_away_ends_after_failures_in_a_row(retries: int) -> None:
    patience, error = Patience(None, retries=retries), DrainingError("draining", retry_delay_s=0.0)
    for _ in range(retries):
        patience.pause_s(error)
    with pytest.raises(DrainingError):
        patience.pause_s(error)


def test_patience_waits_as_long_as_the_server_asks() -> None:
    assert Patience(None, retries=1).pause_s(LoadingError("loading", retry_delay_s=5.0)) >= 4.0
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


@pytest.mark.parametrize("timeout_s", [float("inf"), 7.6e9])
def test_a_call_has_a_deadline_that_grpc_can_hold(timeout_s: float) -> None:
    assert Patience(timeout_s).left_s == 1e9


def test_another_server_may_be_there_at_once_where_one_drains() -> None:
    assert Patience(None, retries=1).pause_s(DrainingError("draining", retry_delay_s=5.0)) < 1.0


AWAY = [ServerUnavailableError("away"), DrainingError("draining"), LoadingError("loading")]


@pytest.mark.parametrize("error", AWAY)
def test_a_server_that_has_answered_is_waited_for_until_the_deadline(error: DragomanError) -> None:
    patience = Patience(1e3, retries=1, is_known=True)
    assert max(patience.pause_s(error) for _ in range(1_000)) <= 1.2
    answered = Patience(1e3, retries=1)
    answered.answered()
    assert all(answered.pause_s(error) for _ in range(10))
    with pytest.raises(type(error)):
        Patience(0.01, retries=1, is_known=True).pause_s(error)


@pytest.mark.parametrize("error", AWAY)
def test_without_retries_no_server_is_waited_for(error: DragomanError) -> None:
    with pytest.raises(type(error)):
        Patience(1e3, is_known=True).pause_s(error)


def test_without_a_deadline_a_server_is_waited_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    times_s = iter([0.0, 30.0, 60.0, 60.1])
    monkeypatch.setattr("time.monotonic", lambda: next(times_s))
    patience = Patience(None, retries=1, is_known=True)
    for _ in range(3):
        assert patience.pause_s(ServerUnavailableError("away"))
    with pytest.raises(ServerUnavailableError):
        patience.pause_s(ServerUnavailableError("away"))


def test_a_server_that_loads_is_waited_for_and_a_model_that_cannot_be_loaded_is_not() -> None:
    patience = Patience(1e3, retries=1)
    assert all(patience.pause_s(LoadingError("loading")) for _ in range(10))
    patience = Patience(1e3, retries=1, is_known=True)
    patience.pause_s(ModelUnavailableError("broken"))
    with pytest.raises(ModelUnavailableError):
        patience.pause_s(ModelUnavailableError("broken"))


def test_nothing_else_is_tried_again() -> None:
    with pytest.raises(InternalError):
        Patience(None, retries=3, wait_when_busy=True).pause_s(InternalError("broken"))
