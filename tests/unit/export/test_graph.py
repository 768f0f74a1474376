"""A graph that grows: its constants, its nodes, and the file it becomes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, numpy_helper

from dragoman.bundle import WEIGHTS
from export.graph import CONTRIB, Graph
from export.weights import WeightsFile
from tests.unit.export.written import content, session

LARGE = np.arange(300, dtype=np.float32)


def saved(graph: Graph, folder: Path) -> ModelProto:
    """The file of a graph, without what lies beside it."""
    graph.save(folder / "a graph.onnx")
    return onnx.load(folder / "a graph.onnx", load_external_data=False)


def test_equal_constants_are_one(tmp_path: Path) -> None:
    graph = Graph()
    assert graph.constant([1, 2]) == graph.constant(np.array([1, 2])) == graph.constant([1.0, 2.0], np.int64)
    others = [
        graph.constant([1, 2], np.float32),  # another type
        graph.constant(np.array([[1, 2]])),  # another shape
        graph.constant([2, 1]),
        graph.constant(np.float32(0.0)),
        graph.constant(np.float32(-0.0)),  # equal, and yet not the same
    ]
    assert len({graph.constant([1, 2]), *others}) == 6
    assert len(saved(graph, tmp_path).graph.initializer) == 6


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.float32(2.5), np.float32),
        (np.arange(6, dtype=np.int8).reshape(2, 3).T, np.int8),
        (np.arange(6, dtype=np.float64).reshape(2, 3), np.float16),
        (np.zeros((0, 2), np.float32), np.float32),
    ],
    ids=["a scalar", "turned", "of another type", "empty"],
)
def test_a_constant_is_what_it_was_made_of(tmp_path: Path, value: NDArray[np.generic], dtype: type) -> None:
    graph = Graph()
    graph.constant(value, dtype)
    [tensor] = saved(graph, tmp_path).graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(tensor), np.asarray(value, dtype), strict=True)


def test_large_constants_lie_beside_the_graph_and_are_shared(tmp_path: Path) -> None:
    with WeightsFile(tmp_path) as weights:
        one, other = Graph(weights), Graph(weights)
        assert one.constant(LARGE) == one.constant(LARGE.astype(np.float64), np.float32)
        assert one.constant(LARGE) != one.constant(LARGE.reshape(30, 10))
        one.constant(LARGE[:255])
        other.constant(-LARGE)
        other.constant(LARGE)
        models = [saved(graph, tmp_path) for graph in (one, other)]
    places = [
        [{entry.key: entry.value for entry in tensor.external_data} for tensor in model.graph.initializer]
        for model in models
    ]
    at_the_start = {"location": WEIGHTS, "offset": "0", "length": "1200"}
    assert places == [[at_the_start, at_the_start, {}], [at_the_start | {"offset": "1216"}, at_the_start]]
    assert [tensor.data_location == TensorProto.EXTERNAL for tensor in models[0].graph.initializer] == [
        True,
        True,
        False,
    ]
    assert (tmp_path / WEIGHTS).read_bytes() == LARGE.tobytes() + bytes(16) + (-LARGE).tobytes()


def test_without_a_file_for_them_large_constants_stay(tmp_path: Path) -> None:
    graph = Graph()
    graph.constant(LARGE)
    [tensor] = saved(graph, tmp_path).graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(tensor), LARGE)


def test_what_is_left_out_at_the_end_is_no_input() -> None:
    def write(weights: WeightsFile) -> Graph:
        graph = Graph(weights)
        states = graph.input("states", np.float32, ["rows"])
        bounds = graph.constant(np.float32(1)), graph.constant(np.float32(2))
        graph.node("Clip", states, "", bounds[1], name="below")
        graph.node("Clip", states, bounds[0], "", name="above")
        graph.node("Clip", states, "", "", name="as it is")
        for name in ("below", "above", "as it is"):
            graph.output(name, np.float32, ["rows"])
        return graph

    assert [len(node.input) for node in content(write).graph.node] == [3, 2, 1]
    below, above, same = session(write).run(None, {"states": np.array([0, 1.5, 3], np.float32)})
    assert (below.tolist(), above.tolist(), same.tolist()) == ([0, 1.5, 2], [1, 1.5, 3], [0, 1.5, 3])


def test_names_of_values_are_new_ones_or_those_that_are_asked_for() -> None:
    graph = Graph()
    first, second = graph.node("Neg", "a"), graph.node("Neg", "a")
    assert len({first, second}) == 2
    assert graph.node("Neg", first, name="b") == "b"
    assert list(graph.nodes("Split", "b", names=["c", "d"], num_outputs=2)) == ["c", "d"]


def test_an_attribute_that_is_none_is_left_out() -> None:
    def write(weights: WeightsFile) -> Graph:
        graph = Graph(weights)
        graph.input("a", np.float32, [2])
        graph.node("ReduceMax", "a", keepdims=None, noop_with_empty_axes=0)
        return graph

    assert [attribute.name for attribute in content(write).graph.node[0].attribute] == ["noop_with_empty_axes"]


def test_a_graph_names_the_operators_it_needs(tmp_path: Path) -> None:
    def versions(domain: str) -> dict[str, int]:
        with WeightsFile(tmp_path) as weights:
            graph = Graph(weights)
            graph.node("Gelu", graph.input("a", np.float32, [2]), domain=domain)
            model = saved(graph, tmp_path)
        assert (model.graph.name, model.ir_version) == ("a graph", 10)
        return {entry.domain: entry.version for entry in model.opset_import}

    assert versions("") == {"": 20}
    assert versions(CONTRIB) == {"": 20, "com.microsoft": 1}


def test_a_small_graph_is_checked_before_it_is_written(tmp_path: Path) -> None:
    graph = Graph()
    graph.node("Neg", "of nothing")
    with pytest.raises(onnx.checker.ValidationError, match="of nothing"):
        graph.save(tmp_path / "graph.onnx")
    assert not list(tmp_path.iterdir())
