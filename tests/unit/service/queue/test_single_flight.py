"""Decodes that several segments share, and what is left when some of them leave."""

from hypothesis import given
from hypothesis import strategies as st

from service.decode import Decode
from service.options import RequestOptions
from service.queue.result_cache import Key
from service.queue.single_flight import SharedDecode, SingleFlight
from service.segment import Segment

DEADLINES = st.sampled_from([None, 5.0, 7.0])


def segment_of(deadline_s: float | None = None, *, wants_deltas: bool = False) -> Segment:
    return Segment([5, 2], 9, RequestOptions(deadline_s=deadline_s, wants_deltas=wants_deltas))


def added(flight: SingleFlight, segment: Segment) -> SharedDecode:
    shared = SharedDecode(Key.of(segment), Decode([5, 2], 9, deadline_s=segment.options.deadline_s))
    flight.add(shared)
    flight.join(segment, shared)
    return shared


def latest(segments: list[Segment]) -> float | None:
    deadlines = [segment.options.deadline_s for segment in segments]
    return None if None in deadlines else max(deadlines)


@given(st.lists(st.tuples(DEADLINES, st.booleans()), min_size=1, max_size=6), st.randoms())
def test_a_decode_asks_for_what_those_who_wait_ask_for(asked: list[tuple[float | None, bool]], chance) -> None:
    flight = SingleFlight(coalesce=True)
    segments = [segment_of(deadline_s, wants_deltas=deltas) for deadline_s, deltas in asked]
    shared = added(flight, segments[0])
    for segment in segments[1:]:
        flight.join(segment, flight.find(Key.of(segment)))
    waiting = list(segments)
    while len(waiting) > 1:
        assert shared.decode.deadline_s == latest(waiting)
        assert shared.decode.wants_deltas is any(segment.options.wants_deltas for segment in waiting)
        assert list(shared.segments) == waiting
        leaving = chance.choice(waiting)
        assert flight.leave([leaving], 0.0) == []
        waiting.remove(leaving)
    assert flight.leave(waiting, 0.0) == [shared.decode]
    assert (len(flight), flight.of(shared.decode), flight.find(shared.key)) == (0, None, None)


def test_without_coalescing_nobody_joins_but_all_are_known() -> None:
    flight, segment = SingleFlight(coalesce=False), segment_of()
    shared = added(flight, segment)
    assert flight.find(Key.of(segment)) is None
    assert (len(flight), flight.of(shared.decode)) == (1, shared)


def test_one_that_is_removed_is_joined_no_more_and_its_segments_leave_nothing() -> None:
    flight, segment = SingleFlight(coalesce=True), segment_of()
    first = added(flight, segment)
    flight.remove(first)
    second = added(flight, segment_of())
    assert flight.find(Key.of(segment)) is second
    assert flight.leave([segment], 0.0) == []
    assert len(flight) == 1


def test_an_older_decode_that_ends_leaves_the_newer_one_to_be_joined() -> None:
    flight = SingleFlight(coalesce=True)
    older, newer = added(flight, segment_of()), added(flight, segment_of())
    flight.remove(older)
    assert flight.find(newer.key) is newer
