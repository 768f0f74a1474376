"""Decodes that several segments share, and what is left when some of them leave."""

from hypothesis import given
from hypothesis import strategies as st

from service.decode import Decode
from service.options import Priority, RequestOptions
from service.queue.intake import SharedDecode
from service.queue.result_cache import Key
from service.segment import Origin, Segment

DEADLINES = st.sampled_from([None, 5.0, 7.0])


def segment_of(deadline_s: float | None = None, *, wants_deltas: bool = False) -> Segment:
    return Segment(Decode([5, 2], 9), RequestOptions(deadline_s=deadline_s, wants_deltas=wants_deltas))


def shared_by(first: Segment, *others: Segment) -> SharedDecode:
    shared = SharedDecode(Key.of(first.decode), first, lambda _: None)
    for segment in (first, *others):
        shared.join(segment)
    return shared


def latest(segments: list[Segment]) -> float | None:
    deadlines = [segment.options.deadline_s for segment in segments]
    return None if None in deadlines else max(deadlines)


@given(st.lists(st.tuples(DEADLINES, st.booleans()), min_size=1, max_size=6), st.randoms())
def test_a_decode_asks_for_what_those_who_wait_ask_for(asked: list[tuple[float | None, bool]], chance) -> None:
    waiting = [segment_of(deadline_s, wants_deltas=deltas) for deadline_s, deltas in asked]
    shared = shared_by(*waiting)
    while len(waiting) > 1:
        assert shared.decode.deadline_s == latest(waiting)
        assert shared.decode.wants_deltas is any(segment.options.wants_deltas for segment in waiting)
        assert list(shared.segments) == waiting
        assert all(segment.decode is shared.decode for segment in waiting)
        leaving = chance.choice(waiting)
        shared.leave(leaving, 0.0)
        shared.trim()
        waiting.remove(leaving)
        assert leaving.finished
        assert leaving.decode is not shared.decode
    shared.leave(waiting[0], 0.0)
    assert not shared.segments


def test_it_asks_for_the_first_before_that_joins_and_waits_in_its_turn() -> None:
    told: list[Decode] = []
    options = RequestOptions(deadline_s=7.0, wants_deltas=True, client="a", priority=Priority.BULK)
    first = Segment(Decode([5, 2], 9), options)
    decode = SharedDecode(Key.of(first.decode), first, told.append).decode
    assert decode is first.decode
    assert (decode.deadline_s, decode.wants_deltas, decode.client, decode.priority) == (7.0, True, "a", Priority.BULK)
    decode.on_progress(decode)
    assert told == [decode]


def test_each_who_joins_another_leaves_a_decode_of_its_own() -> None:
    first, second = segment_of(), segment_of()
    own = [first.decode, second.decode]
    shared = shared_by(first, second)
    assert list(shared.segments.values()) == own
    assert (first.origin, second.origin) == (Origin.DECODED, Origin.COALESCED)
