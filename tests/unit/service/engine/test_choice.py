"""Who chooses the tokens of a segment."""

import numpy as np
import pytest

from service.decode import Decode
from service.engine.choice import chooser_of
from service.engine.sampling import draw, draws
from service.options import SCORING, Decoding, Sampling


def test_draws_go_on_from_one_token_to_the_next() -> None:
    sampling, logits = Sampling(3, temperature=2.0), np.arange(9.0) % 4
    choose, chances = chooser_of(Decode([2], 9, decoding=Decoding.of(sampling=sampling))), draws(sampling)
    expected = [draw(logits, sampling, chances.random()) for _ in range(20)]
    assert [choose(lambda: logits) for _ in range(20)] == expected
    assert len(set(expected)) > 3


def test_a_translation_that_is_given_is_taken_token_by_token_and_needs_no_logits() -> None:
    choose = chooser_of(Decode([2], 3, decoding=SCORING, scored_ids=(7, 8, 2)))
    assert [choose(lambda: pytest.fail("asked for")) for _ in range(3)] == [7, 8, 2]
