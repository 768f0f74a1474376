import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from service.decoding.scores import log_probability

SIZES = st.integers(1, 300)


def reference(logits: np.ndarray, token: int) -> float:
    """In Python's own floats, exactly summed."""
    values = logits.tolist()
    largest = max(values)
    return values[token] - largest - math.log(math.fsum(math.exp(value - largest) for value in values))


@given(st.data(), st.sampled_from([16, 32]))
def test_it_is_the_logarithm_of_the_softmax(data: st.DataObject, width: int) -> None:
    elements = st.floats(-50, 50, width=width) | st.floats(width=width, allow_nan=False, allow_infinity=False)
    logits = data.draw(arrays.arrays(f"float{width}", SIZES, elements=elements))
    token = data.draw(st.integers(0, len(logits) - 1))
    before = logits.copy()
    actual = log_probability(logits, token)
    assert actual == pytest.approx(reference(logits, token), rel=1e-12, abs=1e-12)
    assert actual <= 0
    np.testing.assert_array_equal(logits, before)


@given(arrays.arrays("float32", SIZES, elements=st.floats(-30, 30, width=32)))
def test_the_probabilities_add_up_to_1(logits: np.ndarray) -> None:
    probabilities = [math.exp(log_probability(logits, token)) for token in range(len(logits))]
    assert math.fsum(probabilities) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(
    ("logits", "token", "expected"),
    [
        ([5.0], 0, 0.0),
        ([3.4e38, -3.4e38], 0, 0.0),
        ([3.4e38, -3.4e38], 1, -2 * float(np.float32(3.4e38))),
        ([3.4e38] * 4, 2, -math.log(4)),
        ([-3.4e38] * 4, 2, -math.log(4)),
        ([0.0, 1e-30], 1, -math.log(2)),
        ([-1000.0, 0.0, 0.0], 0, -1000 - math.log(2)),
    ],
)
def test_extreme_logits(logits: list[float], token: int, expected: float) -> None:
    assert log_probability(np.array(logits, "float32"), token) == pytest.approx(expected, rel=1e-15)


@given(st.integers(0, 2**32 - 1), st.integers(2, 9), SIZES, st.sampled_from(["float16", "float32"]))
def test_a_row_gives_the_same_bits_in_any_table(seed: int, rows: int, size: int, dtype: str) -> None:
    """Rows of odd lengths begin at any address."""
    table = np.random.default_rng(seed).normal(0, 9, (rows, size)).astype(dtype)
    for row in table:
        token = int(row.argmax())
        assert log_probability(row, token) == log_probability(row.copy(), token)
