import numpy as np
import pytest

from bench.memory import allocated_mib


@pytest.mark.parametrize("block_bytes", [10_000, 64 * 2**20])
def test_allocated_size_is_of_what_is_not_given_back(block_bytes: int) -> None:
    before_mib = allocated_mib()
    blocks = [np.empty(block_bytes, np.uint8) for _ in range(256 * 2**20 // block_bytes)]
    grown_mib = allocated_mib() - before_mib
    del blocks
    given_back_mib = before_mib + grown_mib - allocated_mib()
    assert grown_mib == pytest.approx(256, abs=32)
    assert given_back_mib == pytest.approx(256, abs=32)
