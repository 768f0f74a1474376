import pytest

from service.constraints import Constraints
from service.decode import FinishReason, Hypothesis
from service.options import Decoding, Priority, RequestOptions
from service.segment import Segment
from tests.unit.service.played_segments import begun, end

OPTIONS = RequestOptions(
    decoding=Decoding(stops_at_repetition=True), deadline_s=7.0, wants_deltas=True, client="a", priority=Priority.BULK
)


def test_before_it_is_submitted_nothing_is_known_of_it() -> None:
    segment = Segment([5, 2], 10)
    assert not segment.finished
    assert (segment.target_ids, segment.decoded_tokens, segment.error, segment.finish_reason) == ([], 0, None, None)
    assert segment.times() == (None, None, None, None)
    segment.on_progress(segment)  # nobody listens, and that is no error


def test_its_decode_gives_all_that_it_asks_for() -> None:
    told: list[object] = []
    constraints = Constraints((((7, 8),),), {9})
    decode = Segment([5, 2], 10, OPTIONS, text_bytes=3, constraints=constraints).new_decode(told.append)
    assert decode.constraints is constraints
    assert (decode.source_ids, decode.max_target_tokens, decode.text_bytes) == ([5, 2], 10, 3)
    assert (decode.decoding, decode.deadline_s, decode.wants_deltas) == (OPTIONS.decoding, 7.0, True)
    assert (decode.client, decode.priority) == ("a", Priority.BULK)
    decode.on_progress(decode)
    assert told == [decode]


def test_no_time_is_before_its_own_submission() -> None:
    segment = Segment([5, 2], 10, submitted_s=5.0)
    segment.decode = segment.new_decode()
    segment.decode.admitted_s, segment.decode.encoded_s, segment.decode.first_token_s = 3.0, 4.0, 6.0
    assert segment.times() == (5.0, 5.0, 6.0, None)


def test_one_that_leaves_stays_as_it_is_while_its_decode_goes_on() -> None:
    segment = Segment([5, 2], 10, OPTIONS)
    decode = segment.decode = segment.new_decode()
    decode.target_ids.append(8)
    segment.leave(6.0)
    decode.target_ids.append(9)
    assert segment.finished
    assert (segment.target_ids, segment.finish_reason, segment.times().finished_s) == ([8], FinishReason.CANCELLED, 6.0)
    assert not decode.finished
    assert not decode.cancel_requested


def test_one_that_leaves_after_its_deadline_ended_by_it() -> None:
    segment = Segment([5, 2], 10, OPTIONS)
    segment.decode = segment.new_decode()
    segment.leave(8.0)
    assert segment.finish_reason is FinishReason.DEADLINE
    assert segment.error is not None


def test_one_that_leaves_does_not_end_as_its_decode_did_meanwhile() -> None:
    segment = Segment([5, 2], 10, OPTIONS)
    segment.decode = segment.new_decode()
    segment.decode.fail_alone(5.0)
    segment.leave(6.0)
    assert (segment.finish_reason, segment.error) == (FinishReason.CANCELLED, None)


def test_equal_segments_are_two() -> None:
    assert len({Segment([2], 1), Segment([2], 1)}) == 2


@pytest.mark.parametrize(
    ("reason", "start_ids", "score"),
    [(FinishReason.EOS, (), -2.0), (FinishReason.LENGTH, (), -3.0), (FinishReason.EOS, (1, 7), -1.5)],
)
def test_the_one_hypothesis_of_a_greedy_decode_is_its_translation(reason, start_ids, score: float) -> None:
    segment = Segment([5, 2], 10, start_ids=start_ids)
    begun(segment).target_ids.extend([8, 9])
    segment.decode.log_probability = -6.0
    end(segment, reason)
    assert segment.hypotheses == (Hypothesis([8, 9], -6.0, score, reason, segment.decoded_tokens),)


def test_a_beam_without_alternatives_scores_its_translation_by_its_penalty() -> None:
    segment = Segment([5, 2], 10, RequestOptions(decoding=Decoding.of(beam_size=4, length_penalty=2.0)))
    begun(segment).target_ids.append(8)
    segment.decode.log_probability = -6.0
    assert end(segment).hypotheses[0].score == -1.5


def test_hypotheses_are_those_of_its_decode() -> None:
    segment = Segment([5, 2], 10)
    found = [Hypothesis([8], -1.0, -0.5, FinishReason.EOS, 2), Hypothesis([9], -2.0, -1.0, FinishReason.EOS, 2)]
    begun(segment).target_ids.append(8)
    segment.decode.hypotheses = found
    assert end(segment).hypotheses == found


def test_one_that_was_withdrawn_before_its_first_token_has_a_hypothesis_too() -> None:
    segment = Segment([5, 2], 10)
    segment.decode = segment.new_decode()
    segment.leave(0.0)
    assert segment.hypotheses == (Hypothesis([], 0.0, 0.0, FinishReason.CANCELLED, 0),)
