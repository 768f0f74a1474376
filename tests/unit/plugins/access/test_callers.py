import time
from contextlib import AbstractContextManager, suppress

import pytest

from dragoman.errors import ConcurrencyLimitedError, RateLimitedError, UnauthenticatedError
from plugins.access import api_keys
from plugins.access.api_keys import KeyStore
from plugins.access.callers import KeyHolders
from plugins.access.rate_limit import NANOSECONDS
from service.telemetry.metrics import Metrics


def bearer(key: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {key}")]


def ring(**limits: dict[str, float]) -> KeyStore:
    """The key of each owner is its name."""
    return KeyStore({name: api_keys.entry_of(name, **limits[name]) for name in limits})


class TimedCallers:
    """Callers whose keys can change, and whose time stands still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **limits: dict[str, float]) -> None:
        self.metrics = Metrics()
        self.ring = ring(**limits)
        self.callers = KeyHolders(self.metrics, lambda: self.ring)
        self.now_ns = 0
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now_ns)

    def visit(self, key: str) -> AbstractContextManager[None]:
        return self.callers.visit(self.callers.identify(bearer(key)))

    def count(self, name: str, outcome: str) -> float:
        return self.metrics.total("api_key_requests_total", key=name, outcome=outcome)


@pytest.mark.parametrize(
    "metadata",
    [
        [("authorization", "Bearer a")],
        [("authorization", "bearer  a ")],
        [("x-api-key", "a")],
        [("x-goog-api-key", "a")],
        [("authorization", "Basic dTpw"), ("x-api-key", "a")],
        [("x-api-key", "b"), ("authorization", "Bearer a")],
        [("x-trace-bin", b"\xff"), ("x-api-key", "a")],
    ],
)
def test_the_name_of_the_key_is_that_of_the_caller(monkeypatch, metadata) -> None:
    callers = TimedCallers(monkeypatch, a={}, b={}).callers
    assert callers.identify(metadata).name == "a"


@pytest.mark.parametrize(
    "metadata",
    [
        [],
        [("authorization", "a")],
        [("authorization", "Basic a")],
        [("authorization", "Bearer secret")],
        [("authorization", "Bearer ")],
        [("x-api-key", "secret")],
        [("x-api-key", "a\udcff")],
        [("authorization", "Bearer secret"), ("x-api-key", "a")],
        [("x-api-key-bin", b"a")],
    ],
)
def test_no_key_or_nobodys_is_refused_without_showing_it(monkeypatch, metadata) -> None:
    callers = TimedCallers(monkeypatch, a={}).callers
    with pytest.raises(UnauthenticatedError) as caught:
        callers.identify(metadata)
    assert "secret" not in str(caught.value)
    assert not caught.value.metadata


def test_too_many_calls_of_late_are_told_when_to_come_back(monkeypatch) -> None:
    timed = TimedCallers(monkeypatch, a={"requests_per_s": 3, "burst": 2}, b={})
    for _ in range(2):
        with timed.visit("a"):
            pass
    with pytest.raises(RateLimitedError) as caught, timed.visit("a"):
        pass
    with timed.visit("b"):  # another's bucket is full
        pass
    delay_ns = round(caught.value.retry_delay_s * NANOSECONDS)
    timed.now_ns = delay_ns - 1
    with pytest.raises(RateLimitedError), timed.visit("a"):
        pass
    timed.now_ns = delay_ns
    with timed.visit("a"):
        pass
    assert (timed.count("a", "ADMITTED"), timed.count("a", "RATE_LIMITED"), timed.count("b", "ADMITTED")) == (3, 2, 1)


def test_too_many_calls_at_a_time_wait_for_the_end_of_one_and_cost_no_token(monkeypatch) -> None:
    timed = TimedCallers(monkeypatch, a={"concurrent_requests": 1, "requests_per_s": 1, "burst": 2})
    with timed.visit("a"):
        for _ in range(5):
            with pytest.raises(ConcurrencyLimitedError) as caught, timed.visit("a"):
                pass
    assert caught.value.retry_delay_s is not None
    with timed.visit("a"):
        pass
    assert timed.count("a", "CONCURRENCY_LIMITED") == 5


def test_a_call_that_fails_leaves_too(monkeypatch) -> None:
    timed = TimedCallers(monkeypatch, a={"concurrent_requests": 1})
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), timed.visit("a"):
            raise ZeroDivisionError


def test_new_limits_hold_from_the_next_call_on_and_calls_that_run_count(monkeypatch) -> None:
    timed = TimedCallers(monkeypatch, a={"requests_per_s": 1, "burst": 1})
    with timed.visit("a"):
        timed.ring = ring(a={"requests_per_s": 1, "burst": 3, "concurrent_requests": 1})
        with pytest.raises(ConcurrencyLimitedError), timed.visit("a"):
            pass
    with timed.visit("a"):
        pass
    timed.ring = ring(b={})
    with pytest.raises(UnauthenticatedError), timed.visit("a"):
        pass
    with timed.visit("b"):
        pass


def test_the_same_limits_read_again_do_not_fill_the_bucket(monkeypatch) -> None:
    timed = TimedCallers(monkeypatch, a={"requests_per_s": 1, "burst": 1})
    with timed.visit("a"):
        pass
    timed.ring = ring(a={"requests_per_s": 1, "burst": 1}, b={})
    with pytest.raises(RateLimitedError), timed.visit("a"):
        pass


def test_a_key_that_is_removed_while_its_call_is_let_in_is_refused_or_served_but_no_error_of_ours() -> None:
    """Another thread puts the new keys in place, at any moment."""
    old, new = ring(alice={}), ring(bob={})
    for looks in range(4):
        rings = iter([*[old] * looks, *[new] * 9])
        callers = KeyHolders(Metrics(), lambda rings=rings: next(rings))
        with suppress(UnauthenticatedError), callers.visit(callers.identify(bearer("alice"))):
            pass
