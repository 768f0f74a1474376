"""The two rounds, as onnxruntime runs them, against numpy's own argmax, equal values included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from export.argmax import argmax, block_size
from export.graph import Graph
from export.weights import WeightsFile
from tests.unit.export.written import session


def best(logits: NDArray[np.float32]) -> list[int]:
    """Runs the graph."""

    def write(weights: WeightsFile) -> Graph:
        graph = Graph(weights)
        graph.input("logits", np.float32, ["rows", logits.shape[1]])
        argmax(graph, "logits", logits.shape[1], "ids")
        graph.output("ids", np.int64, ["rows"])
        return graph

    [ids] = session(write).run(None, {"logits": logits})
    assert ids.dtype == np.int64
    return ids.tolist()


@given(
    rows=st.integers(1, 5),
    values=st.integers(1, 700),
    levels=st.sampled_from([1, 2, 1000]),
    seed=st.integers(0, 2**32),
)
def test_the_first_of_the_largest(rows: int, values: int, levels: int, seed: int) -> None:
    logits = np.random.default_rng(seed).integers(-levels, levels, (rows, values)).astype(np.float32)
    assert best(logits) == logits.argmax(axis=1).tolist()


@pytest.mark.parametrize(("values", "size"), [(8000, 125), (58_101, 107), (256_206, 128), (65_537, 128), (4, 128)])
def test_block_size(values: int, size: int) -> None:
    assert block_size(values) == size


def test_nothing_is_chosen_of_the_padding() -> None:
    assert best(np.full((2, 601), -np.inf, np.float32)) == [0, 0]


@pytest.mark.parametrize("values", [8000, 58_101, 65_537])
def test_vocabularies_of_the_usual_sizes(values: int) -> None:
    logits = np.random.default_rng(1).standard_normal((3, values)).astype(np.float32)
    logits[0, -1] = logits[1, 0] = 10.0
    assert best(logits) == logits.argmax(axis=1).tolist()
    assert best(logits)[:2] == [values - 1, 0]
