"""What a segment in one slot takes of a step."""

import numpy as np
import pytest

from plugins.sampling.sampling import Sampled, draw, draws
from service.decode import Decode, FinishReason
from service.engine.repetition import FEWEST_TOKENS
from service.engine.rows import Given, Greedy
from service.engine.step import Step
from service.options import SCORING, Decoding, Sampling
from tests.unit.service.engine.test_scheduler import Seen

EOS = 2
STOPS = Decoding(stops_at_repetition=True)


def extended(segment: Decode, tokens: list[int]) -> Decode:
    """Appends tokens until the segment ends."""
    row = Greedy(segment, EOS)
    for number, token in enumerate(tokens):
        if segment.finished:
            break
        row.commit(0, token, Step([row], [token], {}, float(number)))
    return segment


def test_a_token_is_appended_and_the_segment_goes_on() -> None:
    segment = extended(Decode([5, 6, 2], 9), [7, 8])
    assert (segment.target_ids, segment.finished) == ([7, 8], False)


def test_a_segment_ends_at_its_limit() -> None:
    segment = extended(Decode([5, 6, 2], 3), [7, 8, 9, 10])
    assert (segment.target_ids, segment.finish_reason, segment.finished_s) == ([7, 8, 9], FinishReason.LENGTH, 2.0)


@pytest.mark.parametrize("cycle", [[7], [7, 8], [7, 8, 9, 10]])
def test_a_segment_that_repeats_itself_ends(cycle: list[int]) -> None:
    segment = extended(Decode([5, 6, 2], 100, decoding=STOPS), cycle * 50)
    assert segment.finish_reason is FinishReason.REPETITION
    assert len(segment.target_ids) == FEWEST_TOKENS


def test_it_goes_on_where_it_is_not_to_be_stopped() -> None:
    segment = extended(Decode([5, 6, 2], 100), [7] * 200)
    assert (segment.finish_reason, len(segment.target_ids)) == (FinishReason.LENGTH, 100)


def test_what_the_source_repeats_may_be_repeated_twice_as_long() -> None:
    source = [5] * 15 + [2]
    segment = extended(Decode(source, 100, decoding=STOPS), [7] * 200)
    assert (segment.finish_reason, len(segment.target_ids)) == (FinishReason.REPETITION, 2 * 15 + 1)


def test_at_the_limit_it_is_the_limit_that_counts() -> None:
    segment = extended(Decode([5, 2], FEWEST_TOKENS, decoding=STOPS), [7] * 50)
    assert segment.finish_reason is FinishReason.LENGTH


def test_draws_go_on_from_one_token_to_the_next() -> None:
    sampling, logits = Sampling(3, temperature=2.0), np.arange(9.0) % 4
    decode, chances = Decode([2], 9, decoding=Decoding.of(sampling=sampling)), draws(sampling)
    row = Sampled(decode, EOS, sampling)
    expected = [draw(logits, sampling, chances.random()) for _ in range(20)]
    assert [row.ask(0, 5, Seen({0: logits}))[0] for _ in range(20)] == expected
    assert len(set(expected)) > 3


def test_a_translation_that_is_given_is_taken_token_by_token_and_needs_no_logits() -> None:
    row = Given(Decode([2], 3, decoding=SCORING, scored_ids=(7, 8, 2)), EOS, iter((7, 8, 2)))
    assert [row.ask(0, 5, Seen())[0] for _ in range(3)] == [7, 8, 2]
