"""The search graph against numpy, equal values included."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from export.search import write_search

Search = Callable[..., tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]]
SIZES = [1, 29, 128, 600, 601, 8000]


@pytest.fixture(scope="module", params=SIZES)
def size(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(scope="module")
def search(size: int, tmp_path_factory: pytest.TempPathFactory) -> Search:
    return opened(size, "fp32", tmp_path_factory.mktemp("search") / "search.onnx")


def opened(size: int, precision: str, file: Path) -> Search:
    write_search(size, precision, file)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])

    def search(logits: NDArray[np.floating], count: int, asked: NDArray[np.int64] | None = None) -> list[NDArray[Any]]:
        asked = np.zeros((len(logits), 0), np.int64) if asked is None else asked
        return session.run(None, {"logits": logits, "count": np.array([count]), "asked_ids": asked})

    return search


@given(
    rows=st.integers(1, 4), count=st.integers(1, 40), levels=st.sampled_from([2, 50, 10**6]), seed=st.integers(0, 99)
)
def test_the_best_of_each_row_and_their_log_probabilities(
    search: Search, size: int, rows: int, count: int, levels: int, seed: int
) -> None:
    count = min(count, size)
    logits = (np.random.default_rng(seed).integers(levels, size=(rows, size)) / levels * 8).astype(np.float32)
    ids, log_probabilities, _ = search(logits, count)
    assert ids.shape == log_probabilities.shape == (rows, count)
    for row, found, scores in zip(logits, ids, log_probabilities, strict=True):
        assert len(set(found.tolist())) == count
        np.testing.assert_array_equal(row[found], np.sort(row)[::-1][:count])
        exact = row.astype(np.float64)
        expected = exact[found] - np.log(np.exp(exact - exact.max()).sum()) - exact.max()
        np.testing.assert_allclose(scores, expected, atol=1e-5)
    # No other row, and no larger count, moves a bit.
    alone_ids, alone_scores, _ = search(logits[-1:], count)
    np.testing.assert_array_equal(alone_ids[0], ids[-1])
    np.testing.assert_array_equal(alone_scores[0], log_probabilities[-1])
    more_ids, more_scores, _ = search(logits, min(count + 9, size))
    np.testing.assert_array_equal(more_ids[:, :count], ids)
    np.testing.assert_array_equal(more_scores[:, :count], log_probabilities)
    # Tokens that are asked for have the log-probabilities that they have among the best.
    np.testing.assert_array_equal(search(logits, 1, ids)[2], log_probabilities)
    asked = search(logits, count, np.zeros((rows, 1), np.int64))[2]
    np.testing.assert_allclose(asked[:, 0] - log_probabilities[:, 0], logits[:, 0] - logits.max(axis=1), atol=1e-5)


def test_half_precision_is_scored_in_single(tmp_path: Path) -> None:
    logits = np.random.default_rng(0).standard_normal((3, 200)).astype(np.float16)
    ids, scores, _ = opened(200, "fp16", tmp_path / "half.onnx")(logits, 4)
    expected_ids, expected, _ = opened(200, "fp32", tmp_path / "single.onnx")(logits.astype(np.float32), 4)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(scores, expected)
