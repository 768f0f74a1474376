from service.decode import Decode, FinishReason
from service.options import RequestOptions
from service.segment import Segment

OPTIONS = RequestOptions(deadline_s=7.0)


def test_before_it_is_submitted_nothing_is_known_of_it() -> None:
    segment = Segment(Decode([5, 2], 10))
    assert not segment.finished
    segment.on_progress(segment)  # nobody listens, and that is no error


def test_one_that_leaves_stays_as_it_is_while_its_decode_goes_on() -> None:
    segment = Segment(Decode([5, 2], 10), OPTIONS)
    decode = segment.decode
    decode.target_ids.append(8)
    segment.leave(6.0)
    decode.target_ids.append(9)
    assert segment.finished
    assert (segment.decode.target_ids, segment.decode.finish_reason, segment.decode.finished_s) == (
        [8],
        FinishReason.CANCELLED,
        6.0,
    )
    assert not decode.finished
    assert not decode.cancel_requested


def test_one_that_leaves_after_its_deadline_ended_by_it() -> None:
    segment = Segment(Decode([5, 2], 10), OPTIONS)
    segment.leave(8.0)
    assert segment.decode.finish_reason is FinishReason.DEADLINE
    assert segment.decode.error is not None


def test_one_that_leaves_does_not_end_as_its_decode_did_meanwhile() -> None:
    segment = Segment(Decode([5, 2], 10), OPTIONS)
    segment.decode.fail_alone(5.0)
    segment.leave(6.0)
    assert (segment.decode.finish_reason, segment.decode.error) == (FinishReason.CANCELLED, None)


def test_equal_segments_are_two() -> None:
    assert len({Segment(Decode([2], 1)), Segment(Decode([2], 1))}) == 2
