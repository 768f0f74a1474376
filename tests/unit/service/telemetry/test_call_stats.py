import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decode import Decode, FinishReason
from service.segment import Origin, Segment
from service.telemetry.access_log import CallStats, Interval

times = st.floats(0, 1e6)


def segment(*moments: float | None, tokens: int = 2, origin: Origin = Origin.DECODED) -> Segment:
    """Submitted, taken, encoded, finished."""
    submitted_s, admitted_s, encoded_s, finished_s = moments
    made = Segment(Decode([5, 6, 7, 2], 50), source_tokens=3, origin=origin, submitted_s=submitted_s)
    decode = made.decode
    decode.target_ids, decode.admitted_s, decode.encoded_s = [9] * tokens, admitted_s, encoded_s
    if finished_s is not None:
        decode.finish(FinishReason.EOS, finished_s)
    return made


def test_a_segment_passes_three_stages() -> None:
    record = CallStats("TranslateText")
    record.note(segment(1.0, 3.0, 6.0, 10.0))
    assert record.stages_ms() == [2_000, 3_000, 4_000]
    assert (record.source_tokens, record.target_tokens) == (3, 2)


@given(st.lists(st.tuples(times, times), min_size=1))
def test_a_stage_is_from_the_first_that_comes_to_the_last_that_leaves(spans: list[tuple[float, float]]) -> None:
    stage = Interval()
    for start_s, end_s in map(sorted, spans):
        stage.add(start_s, end_s)
    assert stage.start_s == min(map(min, spans))
    assert stage.end_s == max(map(max, spans))


def test_a_stage_that_nobody_left_took_no_time() -> None:
    record = CallStats("TranslateText")
    record.note(segment(1.0, 3.0, None, None))
    assert record.stages_ms() == [2_000, 0, 0]


def test_a_segment_that_was_never_taken_was_in_the_queue_to_its_end() -> None:
    record = CallStats("TranslateText")
    record.note(segment(1.0, None, None, 5.0))
    assert record.stages_ms()[0] == 4_000


def test_no_stage_begins_before_the_submission_though_the_decode_is_older() -> None:
    record = CallStats("TranslateText")
    record.note(segment(5.0, 3.0, 4.0, 6.0))
    assert record.stages_ms() == [0, 0, 1_000]


@pytest.mark.parametrize(
    ("origin", "cached", "coalesced"), [(Origin.DECODED, 0, 0), (Origin.CACHED, 1, 0), (Origin.COALESCED, 0, 1)]
)
def test_what_was_not_decoded_is_counted(origin: Origin, cached: int, coalesced: int) -> None:
    record = CallStats("TranslateText")
    record.note(segment(1.0, 1.0, 1.0, 1.0, origin=origin))
    assert (record.cached, record.coalesced) == (cached, coalesced)


def test_a_made_up_request_id_is_one_that_a_caller_may_use() -> None:
    made_up = {CallStats("TranslateText").request_id for _ in range(100)}
    assert len(made_up) == 100
    assert all(re.fullmatch(r"[0-9a-f]{32}", name) for name in made_up)
