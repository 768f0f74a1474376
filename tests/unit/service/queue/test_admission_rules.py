"""What is refused and what is let in, by plain numbers; and what becomes of it in a simulated overload."""

import random
from collections import Counter, deque

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.errors import DeadlineUnreachableError, OverloadedError, QueueFullError
from service.options import Priority
from service.queue.admission_rules import (
    QueueLimits,
    Room,
    WaitEstimate,
    check_deadline,
    check_delay,
    check_room,
    share_of,
)
from service.queue.fair_queue import Load

INTERACTIVE, BULK = Priority
LIMIT = 1_000
SHARE = share_of(LIMIT)
SHARES = LIMIT // SHARE
COUNTS = st.integers(0, 3 * LIMIT)


def refusal(asked: Room, limits: QueueLimits, per_second: float | None = None) -> QueueFullError | None:
    try:
        check_room(asked, limits, lambda: per_second)
    except QueueFullError as error:
        return error
    return None


def room(request: Load, own: Load, *others: Load) -> Room:
    waiting = own
    for other in others:
        waiting = waiting.plus(other)
    return Room(request, own, waiting, lambda: others)


def fits(request: int, own: int, *others: int) -> bool:
    """In source tokens; the same in bytes must have the same answer."""
    in_tokens = room(Load(request, 0), Load(own, 0), *(Load(other, 0) for other in others))
    in_bytes = room(Load(0, request), Load(1, own), *(Load(1, other) for other in others))
    refused = [refusal(in_tokens, QueueLimits(LIMIT)), refusal(in_bytes, QueueLimits(10**9, LIMIT))]
    assert (refused[0] is None) == (refused[1] is None)
    return refused[0] is None


@given(own=COUNTS, request=COUNTS)
def test_one_client_alone_may_fill_the_queue_to_its_limit(own: int, request: int) -> None:
    assert fits(request, own) is (not own or own + request <= LIMIT)


@given(st.integers(0, 10 * LIMIT), COUNTS)
def test_where_nothing_waits_everything_fits(request: int, size_bytes: int) -> None:
    assert refusal(room(Load(request, size_bytes), Load()), QueueLimits(1, 1)) is None


def test_a_full_queue_has_room_for_others() -> None:
    own = SHARE + 1
    assert not fits(1, LIMIT)
    assert fits(LIMIT // 9 - own, own, LIMIT)
    assert not fits(LIMIT // 9 - own + 1, own, LIMIT)


@given(st.integers(0, 10 * LIMIT), st.lists(st.integers(0, 10 * LIMIT), max_size=SHARES - 1))
def test_who_has_nothing_waiting_is_not_refused_for_what_others_have(request: int, others: list[int]) -> None:
    assert fits(request, 0, *others)


@given(st.integers(0, SHARE), st.integers(0, SHARE), st.lists(st.integers(0, 10 * LIMIT), max_size=SHARES - 1))
def test_a_share_of_the_limit_is_each_client_s_own(request: int, own: int, others: list[int]) -> None:
    assert fits(request, min(own, SHARE - request), *others)


def test_where_all_shares_are_taken_there_is_none_left() -> None:
    left = LIMIT - SHARES * SHARE
    assert 0 < left < SHARE
    assert fits(left, 0, *[LIMIT] * SHARES)
    assert not fits(left + 1, 0, *[LIMIT] * SHARES)


@given(st.lists(st.tuples(st.integers(0, 120), st.integers(1, SHARE)), max_size=400))
def test_however_many_flood_it_the_whole_is_bounded(requests: list[tuple[int, int]]) -> None:
    held = Counter[int]()
    for client, tokens in requests:
        if fits(tokens, held[client], *(waiting for other, waiting in held.items() if other != client)):
            held[client] += tokens
    assert held.total() <= LIMIT * 9 / 8 + LIMIT


@given(own=COUNTS, others=COUNTS, request=st.integers(1, 3 * LIMIT), per_second=st.floats(1.0, 1e5))
def test_who_comes_back_after_the_delay_named_finds_room(
    own: int, others: int, request: int, per_second: float
) -> None:
    error = refusal(room(Load(request, 0), Load(own, 0), Load(others, 0)), QueueLimits(LIMIT), per_second)
    assume(error is not None)
    assert error is not None
    assert error.retry_delay_s is not None
    assert 0.05 <= error.retry_delay_s <= 30
    drained = round(error.retry_delay_s * per_second)
    if error.retry_delay_s < 30:
        own = max(0, own - max(0, drained - others))
        assert fits(request, own, max(0, others - drained))


def test_without_a_rate_the_delay_is_that_of_the_class() -> None:
    error = refusal(room(Load(1, 0), Load(LIMIT, 0)), QueueLimits(LIMIT))
    assert error is not None
    assert error.retry_delay_s == QueueFullError.default_retry_delay_s


def test_full_of_bytes_names_bytes_and_when_they_will_have_left() -> None:
    full = room(Load(10, 400), Load(5_000, 1_000))
    error = refusal(full, QueueLimits(10**9, LIMIT), per_second=1_000.0)
    assert error is not None
    assert error.metadata == {
        "queued_text_bytes": "1000",
        "client_text_bytes": "1000",
        "request_text_bytes": "400",
        "limit_text_bytes": "1000",
    }
    assert error.retry_delay_s == pytest.approx(5_000 * 450 / 1_000 / 1_000)


def outlook(before: int, per_second: float | None, *, own: int = 10, priority: Priority = INTERACTIVE) -> WaitEstimate:
    return WaitEstimate(priority, own, before, before, per_second)


def test_an_interactive_request_that_would_wait_too_long_is_refused() -> None:
    limits = QueueLimits(LIMIT, max_delay_s=2.0)
    check_delay(outlook(2_000, 1_000.0), limits)
    with pytest.raises(OverloadedError) as caught:
        check_delay(outlook(2_500, 1_000.0), limits)
    assert caught.value.metadata == {"estimated_delay_s": "2.500", "max_delay_s": "2"}
    assert caught.value.retry_delay_s == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        (QueueLimits(LIMIT), outlook(10**9, 1.0)),
        (QueueLimits(LIMIT, max_delay_s=1.0), outlook(10**9, None)),
        (QueueLimits(LIMIT, max_delay_s=1.0), outlook(10**9, 1.0, priority=BULK)),
        (QueueLimits(LIMIT, max_delay_s=1.0), outlook(0, 1.0, own=10**9)),
    ],
    ids=["no limit", "rate not known", "bulk", "its own tokens"],
)
def test_nobody_else_is_refused_for_the_delay(limits: QueueLimits, found: WaitEstimate) -> None:
    check_delay(found, limits)


def test_a_deadline_out_of_reach_is_refused_and_says_why() -> None:
    check_deadline(outlook(990, 1_000.0), remaining_s=1.26)
    with pytest.raises(DeadlineUnreachableError) as caught:
        check_deadline(outlook(990, 1_000.0), remaining_s=1.24)
    assert caught.value.metadata == {"estimated_s": "1.000", "remaining_s": "1.240"}
    assert caught.value.retry_delay_s is None


def test_without_a_rate_no_deadline_is_out_of_reach() -> None:
    check_deadline(outlook(10**9, None), remaining_s=0.001)


@pytest.mark.parametrize("deadline_s", [0.1, 0.2, 1.0])
def test_in_an_overload_that_lasts_the_engine_works_for_those_who_are_in_time(deadline_s: float) -> None:
    """Five times what 64 slots of a segment in 12 steps of 5 ms can do, and every request has the same deadline."""
    slots, step_s, steps, seconds = 64, 0.005, 12, 5
    capacity = slots / (steps * step_s)
    chance = random.Random(1)
    waiting, running = deque[float](), list[tuple[float, int]]()  # deadlines; and steps left
    in_time = late = 0
    arrival_s = now_s = 0.0
    while now_s < seconds:
        now_s += step_s
        while arrival_s < now_s:
            arrival_s += chance.expovariate(5 * capacity)
            try:
                check_deadline(outlook(len(waiting) + len(running), capacity, own=1), deadline_s)
            except DeadlineUnreachableError:
                continue
            waiting.append(arrival_s + deadline_s)
        while waiting and waiting[0] < now_s:
            waiting.popleft()
        in_time += sum(left == 1 for _, left in running)
        late += sum(left > 1 and limit_s < now_s for limit_s, left in running)
        running = [(limit_s, left - 1) for limit_s, left in running if left > 1 and limit_s >= now_s]
        while waiting and len(running) < slots:
            running.append((waiting.popleft(), max(2, round(chance.gauss(steps, steps * 0.4)))))
    assert in_time > 0.9 * capacity * seconds
    assert late < 0.15 * in_time
