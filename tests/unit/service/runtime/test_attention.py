import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from service.runtime.attention import attention


@given(
    st.integers(1, 40).flatmap(lambda size: arrays.arrays(np.float32, (3, size), elements=st.floats(-90, 90, width=32)))
)
def test_it_is_the_mean_of_the_softmax_of_some_heads(scores: np.ndarray) -> None:
    exact = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(attention(scores, (2,)), exact[2], atol=1e-6)
    np.testing.assert_allclose(attention(scores, (0, 2)), (exact[0] + exact[2]) / 2, atol=1e-6)
    assert attention(scores, range(3)).sum() == pytest.approx(1, abs=1e-5)


def test_half_precision_is_computed_in_single() -> None:
    scores = np.array([[11.0, 0.0]], np.float16)
    found = attention(scores, (0,))
    assert found.dtype == np.float32
    assert 0 < found[1] < 2e-5
