"""Products and look-ups of floats, as onnxruntime runs them, against numpy; those of bytes are in test_quantize.py."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from export.graph import Graph
from export.parameters import Parameters
from export.products import ByteProducts, FloatProducts, Products
from export.weights import WeightsFile
from model.config import TransformerConfig
from tests.unit.export.written import content, parameters, session

Floats = NDArray[np.float32]
Run = Callable[[Graph, str], object]
STATES = np.random.default_rng(0).standard_normal((3, 5, 16)).astype(np.float32)
CONFIG = TransformerConfig(source_vocabulary_size=9, target_vocabulary_size=9, d_model=16, share_embeddings=True)
OUTPUTS = {"one": 8, "other": 24, "output": 9}
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float16])
either = pytest.mark.parametrize("bias", [True, False])


def held(*, bias: bool = True) -> Parameters:
    chance = np.random.default_rng(1)
    arrays = {f"{name}.weight": chance.standard_normal((out, 16)) for name, out in OUTPUTS.items()}
    if bias:
        arrays |= {f"{name}.bias": chance.standard_normal(out) for name, out in OUTPUTS.items()}
    arrays["target_embedding.weight"] = arrays["source_embedding.weight"] = arrays["output.weight"]
    return parameters({name: array.astype(np.float32) for name, array in arrays.items()}, CONFIG)


def expected(weights: Parameters, layer: str, states: Floats) -> Floats:
    product = states @ weights.read(f"{layer}.weight").T
    bias = weights.bias(layer)
    return product if bias is None else product + bias


def run(products: Products, states: Floats, write: Run) -> Floats:
    """Runs what is written of states to "result"."""

    def graph(weights: WeightsFile) -> Graph:
        graph = Graph(weights)
        write(graph, graph.input("states", products.dtype, list(states.shape)))
        graph.output("result", products.dtype, [None] * states.ndim)
        return graph

    [result] = session(graph).run(None, {"states": states.astype(products.dtype)})
    assert result.dtype == products.dtype
    return result.astype(np.float32)


@both_types
@either
def test_layers_that_read_the_same_stand_side_by_side(dtype: type[np.floating], bias: bool) -> None:
    weights = held(bias=bias)
    products = FloatProducts(weights, dtype)
    result = run(
        products, STATES, lambda graph, states: products.linear(graph, states, ["one", "other"], name="result")
    )
    both = [expected(weights, layer, STATES) for layer in ("one", "other")]
    np.testing.assert_allclose(result, np.concatenate(both, -1), atol=1e-5 if dtype is np.float32 else 0.05)
    assert products.read == {"one": "states", "other": "states"}
    assert products.made == {"one": "result", "other": "result"}


@either
def test_in_bytes_too(bias: bool) -> None:
    weights = held(bias=bias)
    products = ByteProducts(weights, {"one": 4.0, "other": 4.0})
    result = run(
        products, STATES, lambda graph, states: products.linear(graph, states, ["one", "other"], name="result")
    )
    both = np.concatenate([expected(weights, layer, STATES) for layer in ("one", "other")], -1)
    assert np.linalg.norm(result - both) < 0.03 * np.linalg.norm(both)


@both_types
@either
def test_logits(dtype: type[np.floating], bias: bool) -> None:
    weights = held(bias=bias)
    products, states = FloatProducts(weights, dtype), STATES[0]
    result = run(products, states, lambda graph, name: products.logits(graph, name, "result"))
    np.testing.assert_allclose(result, expected(weights, "output", states), atol=1e-5 if dtype is np.float32 else 0.05)
    assert products.read == {"output": "states"}


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_rows_are_looked_up_with_their_factor(factor: float) -> None:
    weights = held()

    def write(file: WeightsFile) -> Graph:
        graph = Graph(file)
        ids = graph.input("ids", np.int64, ["rows", "length"])
        rows = FloatProducts(weights, np.float32).embedding(graph, ids, "source_embedding.weight", factor)
        graph.output(rows, np.float32, ["rows", "length", 16])
        return graph

    ids = np.array([[0, 3, 8], [1, 1, 2]])
    [rows] = session(write).run(None, {"ids": ids})
    np.testing.assert_allclose(rows, weights.read("source_embedding.weight")[ids] * factor)


@pytest.mark.parametrize(
    ("products", "constants"), [(FloatProducts(held(), np.float32), 1), (ByteProducts(held(), {}), 2)]
)
def test_embeddings_that_are_one_stay_one(products: Products, constants: int) -> None:
    """In bytes: levels and scales."""

    def write(weights: WeightsFile) -> Graph:
        graph = Graph(weights)
        ids = graph.input("ids", np.int64, ["rows", "length"])
        for side in ("source", "target"):
            products.embedding(graph, ids, f"{side}_embedding.weight", 1.0)
        return graph

    assert len(content(write).graph.initializer) == constants
