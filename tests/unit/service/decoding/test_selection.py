import numpy as np
import pytest

from service.decoding.scores import log_probability
from service.decoding.selection import select

LOGITS = np.array([[0.0, 3.0, 1.0], [2.0, 0.0, 1.0], [0.0, 0.0, 5.0]], np.float32)


def test_tokens_are_those_of_the_graph() -> None:
    selection = select([1, 0, 2], [], LOGITS.__getitem__, {})
    assert list(selection.tokens) == [1, 0, 2]
    assert selection.log_probabilities == {}


def test_log_probabilities_are_those_of_the_rows_that_want_them() -> None:
    selection = select([1, 0, 2], [0, 2], LOGITS.__getitem__, {})
    assert selection.log_probabilities == {0: log_probability(LOGITS[0], 1), 2: log_probability(LOGITS[2], 2)}


def test_a_row_on_which_the_decoder_failed_has_none_and_its_logits_are_not_asked_for() -> None:
    selection = select([None, 0], [0, 1], lambda row: LOGITS[row] if row else pytest.fail("asked for"), {})
    assert list(selection.tokens) == [None, 0]
    assert list(selection.log_probabilities) == [1]
