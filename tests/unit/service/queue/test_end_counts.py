import pytest

from dragoman.errors import DeadlineExceededError, InternalError
from service.decode import Decode, FinishReason
from service.options import SCORING, Decoding
from service.queue.mailbox import EndCounts
from service.telemetry.metrics import Metrics


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def ends(metrics: Metrics) -> EndCounts:
    return EndCounts(metrics.of("en-de"))


def ended(reason: FinishReason, source: int = 4, target: int = 4, limit: int = 50) -> Decode:
    segment = Decode([5] * source, limit, target_ids=[7] * target)
    segment.finish(reason, 0.0)
    return segment


def saved(metrics: Metrics) -> float | None:
    return metrics.total("cancelled_tokens_saved_total")


@pytest.mark.parametrize("reason", FinishReason)
def test_ends_are_counted_by_their_reason(ends: EndCounts, metrics: Metrics, reason: FinishReason) -> None:
    ends.enter([ended(reason), ended(reason)])
    for other in FinishReason:
        count = metrics.total("segments_total", reason=other.name)
        assert count == (2 if other is reason else 0)


def test_segments_that_were_searched_are_counted(ends: EndCounts, metrics: Metrics) -> None:
    searched = Decode([5, 2], 9, target_ids=[7], decoding=Decoding(beam_size=4))
    searched.finish(FinishReason.EOS, 0.0)
    ends.enter([ended(FinishReason.EOS), searched])
    assert metrics.total("searched_segments_total") == 1
    assert metrics.total("segments_total", reason="EOS") == 2


@pytest.mark.parametrize(
    ("error", "reason"), [(InternalError("broken"), "INTERNAL"), (DeadlineExceededError("late"), "DEADLINE")]
)
def test_a_failure_is_an_end_too(ends: EndCounts, metrics: Metrics, error: Exception, reason: str) -> None:
    segment = Decode([2], 9)
    segment.fail(error, 0.0)
    ends.enter([segment])
    assert metrics.total("segments_total", reason=reason) == 1


@pytest.mark.parametrize("reason", [FinishReason.CANCELLED, FinishReason.DEADLINE])
def test_what_the_rest_would_have_taken_is_saved(ends: EndCounts, metrics: Metrics, reason: FinishReason) -> None:
    ends.enter([ended(FinishReason.EOS, source=10, target=10), ended(FinishReason.EOS, source=10, target=30)])
    ends.enter([ended(reason, source=7, target=3)])
    assert saved(metrics) == 2 * 7 - 3


def test_before_there_is_experience_a_token_is_expected_for_a_token(ends: EndCounts, metrics: Metrics) -> None:
    ends.enter([ended(FinishReason.CANCELLED, source=7, target=0)])
    assert saved(metrics) == 7


def test_no_more_is_saved_than_the_limit_and_never_less_than_nothing(ends: EndCounts, metrics: Metrics) -> None:
    ends.enter([ended(FinishReason.CANCELLED, source=30, target=2, limit=12)])
    assert saved(metrics) == 10
    ends.enter([ended(FinishReason.CANCELLED, source=3, target=9)])
    assert saved(metrics) == 10


@pytest.mark.parametrize("reason", [FinishReason.EOS, FinishReason.LENGTH, FinishReason.REPETITION])
def test_what_was_answered_saved_nothing(ends: EndCounts, metrics: Metrics, reason: FinishReason) -> None:
    ends.enter([ended(reason, target=1)])
    assert saved(metrics) == 0


def test_the_ratio_of_lengths_is_without_end_tokens_and_of_what_was_decoded_to_its_end(
    ends: EndCounts, metrics: Metrics
) -> None:
    ends.enter(
        [
            ended(FinishReason.EOS, source=5, target=3),
            ended(FinishReason.LENGTH, source=5, target=20),
            ended(FinishReason.REPETITION, source=5, target=8),
            ended(FinishReason.CANCELLED, source=5, target=1),
            ended(FinishReason.DEADLINE, source=5, target=1),
        ]
    )
    assert metrics.total("length_ratio_count") == 3
    assert metrics.total("length_ratio_sum") == 3 / 4 + 20 / 4 + 8 / 4


@pytest.mark.parametrize("reason", [FinishReason.EOS, FinishReason.CANCELLED])
def test_a_given_translation_tells_nothing_of_lengths(ends: EndCounts, metrics: Metrics, reason: FinishReason) -> None:
    scored = Decode([5, 6, 2], 9, target_ids=[7], decoding=SCORING, scored_ids=(7,) * 8 + (2,))
    scored.finish(reason, 0.0)
    ends.enter([scored])
    assert metrics.total("segments_total", reason=reason.name) == 1
    assert (metrics.total("length_ratio_count"), saved(metrics)) == (0, 0)
    ends.enter([ended(FinishReason.CANCELLED, source=7, target=0)])
    assert saved(metrics) == 7


def test_a_source_of_nothing_but_its_end_divides_by_no_zero(ends: EndCounts, metrics: Metrics) -> None:
    ends.enter([ended(FinishReason.EOS, source=1, target=0)])
    assert metrics.total("length_ratio_sum") == 0
