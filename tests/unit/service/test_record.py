import re

import pytest

from service.record import Record
from service.request import FinishReason, Segment


def test_a_made_up_request_id_is_one_that_a_caller_may_use() -> None:
    made_up = {Record("TranslateText").request_id for _ in range(100)}
    assert len(made_up) == 100
    assert all(re.fullmatch(r"[0-9a-f]{32}", name) for name in made_up)


def test_tokens_are_summed_and_the_longest_times_kept() -> None:
    record = Record("TranslateText")
    for queue_s, encode_s, decode_s in ((1.0, 0.25, 3.0), (2.0, 0.125, 1.0)):
        segment = Segment([5, 6, 2], 10, target_ids=[7, 8])
        segment.submitted_s = 100.0
        segment.admitted_s = segment.submitted_s + queue_s
        segment.first_token_s = segment.admitted_s + encode_s
        segment.finish(FinishReason.EOS, segment.first_token_s + decode_s)
        record.note(segment)
    assert (record.source_tokens, record.target_tokens) == (4, 4)
    assert (record.queue_s, record.encode_s, record.decode_s) == pytest.approx((2.0, 0.25, 3.0))


def test_stages_that_were_not_reached_count_for_nothing() -> None:
    record, segment = Record("TranslateText"), Segment([5, 2], 10)
    segment.submitted_s = 100.0
    segment.fail_alone(101.0)
    record.note(segment)
    assert (record.queue_s, record.encode_s, record.decode_s) == (0.0, 0.0, 0.0)
    assert (record.source_tokens, record.target_tokens) == (1, 0)
