"""What the server reads of ONNX files, against the package that writes them."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from dragoman.bundle import COPY, DECODER, ENCODER, PLACE, WEIGHTS
from dragoman.errors import BundleError
from service.runtime.onnx_file import CLASSES, INT8, Graph
from tests.synthetic import Synthetic

pytestmark = pytest.mark.torch

FILE = Path("decoder.onnx")


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_nodes_and_constants_are_those_that_onnx_reads(precision: str, request: pytest.FixtureRequest) -> None:
    synthetic: Synthetic = request.getfixturevalue(precision)
    for name in (ENCODER, DECODER, PLACE, COPY):
        content, file = synthetic.bundle.graph(name)
        expected = onnx.load(file).graph
        with synthetic.bundle.mapped(WEIGHTS) as weights:
            graph = Graph(content, file, weights)
        assert [(node.operator, list(node.inputs)) for node in graph.nodes] == [
            (node.op_type, list(node.input)) for node in expected.node
        ]
        for tensor in expected.initializer:
            constant = graph.constants[tensor.name]
            assert (constant.data_type, list(constant.shape)) == (tensor.data_type, list(tensor.dims))
            if constant.place is not None:
                assert bytes(constant.content) == numpy_helper.to_array(tensor).tobytes()
            if tensor.data_type == INT8:
                np.testing.assert_array_equal(constant.bytes_of(), numpy_helper.to_array(tensor))
        assert len(graph.constants) == len(expected.initializer)


def elsewhere(tensor: TensorProto, location: str = "weights.bin", offset: str = "0", length: str = "16") -> TensorProto:
    """Says that the numbers are in another file."""
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=value)
    return tensor


def moved(**place: str) -> Callable[[ModelProto], object]:
    return lambda made: elsewhere(made.graph.initializer[0], **place)


def model(edit: Callable[[ModelProto], object]) -> bytes:
    """A valid file, edited."""
    weights = numpy_helper.from_array(np.zeros((2, 2), np.float32), "weights")
    node = helper.make_node("MatMul", ["a", "weights"], ["y"])
    made = helper.make_model(helper.make_graph([node], "g", [], [], [weights]))
    edit(made)
    content: bytes = made.SerializeToString()
    return content


def constant_node(**attribute: object) -> Callable[[ModelProto], object]:
    return lambda made: made.graph.node.append(helper.make_node("Constant", [], ["c"], **attribute))


VALUE = numpy_helper.from_array(np.zeros(2, np.float32), "value")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda made: setattr(made.graph.initializer[0], "data_location", 1), "not in None"),
        (lambda made: made.graph.initializer[0].external_data.add(key="offset", value="0"), "not in None"),
        *[
            (moved(location=location), f"weights: weights lie in the graph or in weights.bin, not in '{location}'")
            for location in ("", ".", "..", "other.bin", "../weights.bin", "./weights.bin", "/etc/passwd", "x" * 70)
        ],
        (moved(offset="-1"), "bytes -1 to 15 of weights.bin, which has 24"),
        (moved(offset="9"), "bytes 9 to 25 of weights.bin, which has 24"),
        (moved(length="-1"), "bytes 0 to -1 of weights.bin, which has 24"),
        (moved(length="1e9"), "does not say where in weights.bin it lies"),
        (constant_node(value=elsewhere(numpy_helper.from_array(np.zeros(2, np.float32)))), "in another file"),
        (lambda made: made.functions.add(name="f"), "functions, graphs within graphs and sparse weights"),
        (constant_node(then_branch=GraphProto(name="inner")), "functions, graphs within graphs and sparse weights"),
        (lambda made: made.graph.sparse_initializer.add(), "functions, graphs within graphs and sparse weights"),
        (lambda made: made.ClearField("graph"), "it has no graph"),
    ],
)
def test_what_is_not_in_the_file_itself_is_refused(edit: Callable[[ModelProto], object], message: str) -> None:
    with pytest.raises(BundleError, match=message) as caught:
        Graph(model(edit), FILE, bytes(24))
    assert caught.value.message.startswith("decoder.onnx: ")


def test_weights_in_the_file_for_them_are_read() -> None:
    numbers = np.arange(6, dtype=np.float32)
    constant = Graph(model(moved(offset="8")), FILE, numbers.tobytes()).constants["weights"]
    assert (constant.place, constant.shape, bytes(constant.content)) == (8, (2, 2), numbers[2:].tobytes())


def test_a_constant_node_is_no_harm() -> None:
    assert [node.operator for node in Graph(model(constant_node(value=VALUE)), FILE).nodes] == ["MatMul", "Constant"]


@pytest.mark.parametrize("content", [b"no graph", b"\xff" * 50, b"ORTM" * 9])
def test_another_file_is_named(content: bytes) -> None:
    with pytest.raises(BundleError, match=r"^decoder\.onnx: it is no ONNX file"):
        Graph(content, FILE)


def test_the_class_of_a_message_within_another_outlives_a_collection() -> None:
    tensor = weakref.ref(type(CLASSES["Model"]().graph.initializer.add()))
    gc.collect()
    assert tensor() is not None
