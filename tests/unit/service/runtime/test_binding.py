"""Where tensors lie, and what the encoder is given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bundle import SOURCE, SOURCE_LENGTHS, SOURCE_SIZE
from service.runtime.binding import Tensor, encoder_feeds

PAD = 0


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.float16, np.float32])
def test_a_tensor_is_where_its_array_is(dtype: type) -> None:
    array = np.zeros((3, 5), dtype=dtype)
    tensor = Tensor.of(array)
    assert tensor == ("cpu", array.dtype, (3, 5), array.ctypes.data)
    assert tensor.nbytes == array.nbytes


def test_a_scalar_has_the_bytes_of_its_number() -> None:
    assert Tensor.of(np.array(7, dtype=np.int64)).nbytes == 8


@given(st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=9), min_size=1, max_size=5))
def test_sources_are_padded_to_the_longest(sources: list[list[int]]) -> None:
    feeds = encoder_feeds(sources, PAD)
    longest = max(map(len, sources))
    assert feeds[SOURCE].shape == (len(sources), longest)
    assert feeds[SOURCE_LENGTHS].tolist() == [len(ids) for ids in sources]
    assert feeds[SOURCE_SIZE].shape == ()
    assert int(feeds[SOURCE_SIZE]) == longest
    for row, ids in zip(feeds[SOURCE].tolist(), sources, strict=True):
        assert row == ids + [PAD] * (longest - len(ids))
    assert [feeds[name].dtype for name in (SOURCE, SOURCE_LENGTHS, SOURCE_SIZE)] == [np.int64, np.int32, np.int32]
