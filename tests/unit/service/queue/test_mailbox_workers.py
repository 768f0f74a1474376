"""What each worker gets of what waits in a mailbox, and who is woken for it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decode import Decode
from service.options import Decoding
from service.queue.mailbox import Mailbox
from tests.unit.service.queue.conftest import until_blocked

PATIENCE_S = 60.0
PLENTY = 1_000_000


def mailbox_of(demands: Sequence[int]) -> Mailbox:
    """An empty mailbox with a worker for each demand, which has found nothing."""
    mailbox = Mailbox(PLENTY)
    for _ in demands:
        mailbox.register_worker()
    for worker, demand in enumerate(demands):
        assert mailbox.take(worker, demand, wait=False, demand=demand) == []
    return mailbox


def decodes(*lengths: int) -> list[Decode]:
    return [Decode([2] * length, 9) for length in lengths]


@given(st.integers(1, 4), st.integers(0, 30), st.integers(0, 9), st.integers(0, 9))
def test_a_worker_gets_what_it_wants_or_its_share_and_never_more_than_it_has_room_for(count, waiting, room, demand):
    mailbox = mailbox_of([0] * count)
    mailbox.submit(decodes(*[1] * waiting))
    taken = mailbox.take(0, room, wait=False, demand=demand)
    assert len(taken or []) == min(room, waiting, max(demand, -(-waiting // count)))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 30), st.data())
def test_what_earlier_workers_want_is_not_left_for_later_ones(wanted: list[int], waiting: int, data) -> None:
    mailbox = mailbox_of(wanted)
    mailbox.submit(decodes(*[1] * waiting))
    worker = data.draw(st.integers(0, len(wanted) - 1))
    taken = mailbox.take(worker, waiting, wait=False, demand=waiting)
    assert len(taken or []) == max(0, waiting - sum(wanted[:worker]))


def test_one_that_got_long_decodes_wants_no_more() -> None:
    for first, left in ((decodes(3, 3), 7), (decodes(200), 10)):
        mailbox = mailbox_of([5, 0])
        mailbox.submit(first)
        assert mailbox.take(0, 8, wait=False, demand=5) == first
        mailbox.submit(decodes(*[1] * 10))
        assert len(mailbox.take(1, 10, wait=False, demand=10) or []) == left


def test_a_beam_of_a_short_sentence_is_no_long_run() -> None:
    mailbox = mailbox_of([8, 0])
    mailbox.submit([Decode([2] * 30, 9, decoding=Decoding(beam_size=4))])
    assert len(mailbox.take(0, 8, wait=False, demand=8) or []) == 1
    mailbox.submit(decodes(*[1] * 10))
    assert len(mailbox.take(1, 10, wait=False, demand=10) or []) == 10 - 4, "the first wants four more"


def test_all_are_saturated_once_each_got_all_that_it_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    mailbox, saturated = mailbox_of([0, 0]), list[bool]()
    monkeypatch.setattr(mailbox.admission, "note_taken", lambda _: saturated.append(mailbox.is_saturated()))
    assert mailbox.take(0, 9, wait=False) == []
    assert mailbox.take(1, 9, wait=False) == []
    mailbox.submit([*decodes(1, 1, 1, 1), Decode([2], 9, decoding=Decoding(beam_size=4))])
    assert len(mailbox.take(0, 2, wait=False, demand=2) or []) == 2
    assert len(mailbox.take(1, 3, wait=False, demand=3) or []) == 2  # the last is too large for it now
    assert len(mailbox.take(0, 9, wait=False, demand=9) or []) == 1
    assert saturated[-3:] == [False, True, False]


def test_those_are_woken_for_whom_something_is_left() -> None:
    mailbox = Mailbox(PLENTY)
    for _ in range(3):
        mailbox.register_worker()
    with ThreadPoolExecutor(3) as pool:
        taken = [pool.submit(mailbox.take, worker, 1, wait=True, demand=1) for worker in range(3)]
        try:
            until_blocked(3)
            mailbox.submit(decodes(1, 1))
            assert [len(taken[worker].result(PATIENCE_S) or []) for worker in (0, 1)] == [1, 1]
            assert not taken[2].done()
        finally:
            mailbox.stop()
        assert taken[2].result(PATIENCE_S) is None
