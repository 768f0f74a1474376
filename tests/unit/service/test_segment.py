import pytest

from dragoman.errors import InternalError
from service.segment import FinishReason, Segment, SegmentStatus


def test_a_new_segment_waits() -> None:
    segment = Segment([5, 2], 10)
    assert segment.status is SegmentStatus.WAITING
    assert not segment.finished
    segment.on_progress(segment)  # nobody listens, and that is no error


@pytest.mark.parametrize("status", SegmentStatus)
def test_finished_follows_from_the_status(status: SegmentStatus) -> None:
    segment = Segment([2], 1, status=status)
    assert segment.finished is (status in (SegmentStatus.FINISHED, SegmentStatus.CANCELLED))


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (FinishReason.EOS, SegmentStatus.FINISHED),
        (FinishReason.LENGTH, SegmentStatus.FINISHED),
        (FinishReason.REPETITION, SegmentStatus.FINISHED),
        (FinishReason.CANCELLED, SegmentStatus.CANCELLED),
    ],
)
def test_an_end_without_error(reason: FinishReason, status: SegmentStatus) -> None:
    segment = Segment([2], 1)
    segment.finish(reason, 7.0)
    assert (segment.finish_reason, segment.status, segment.finished_s) == (reason, status, 7.0)
    assert segment.error is None


def test_an_end_with_an_error_has_no_reason_but_the_error() -> None:
    segment, error = Segment([2], 1), InternalError("broken")
    segment.fail(error, 7.0)
    assert segment.error is error
    assert (segment.finish_reason, segment.status, segment.finished_s) == (None, SegmentStatus.FINISHED, 7.0)


@pytest.mark.parametrize(("reason", "tokens"), [(None, 2), (FinishReason.LENGTH, 2), (FinishReason.EOS, 3)])
def test_the_end_of_sentence_token_was_decoded_too(reason: FinishReason | None, tokens: int) -> None:
    segment = Segment([2], 9)
    segment.target_ids += [5, 6]
    if reason is not None:
        segment.finish(reason, 3.0)
    assert segment.decoded_tokens == tokens


def test_equal_segments_are_two() -> None:
    assert len({Segment([2], 1), Segment([2], 1)}) == 2


def test_segments_do_not_share_their_tokens() -> None:
    first, second = Segment([2], 1), Segment([2], 1)
    first.target_ids.append(5)
    assert second.target_ids == []
