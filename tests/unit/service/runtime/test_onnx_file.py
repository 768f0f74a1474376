"""What the server reads of ONNX files, against the package that writes them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from dragoman.errors import BundleError
from service.runtime.onnx_file import INT8, Graph
from tests.synthetic import Synthetic

pytestmark = pytest.mark.torch

FILE = Path("decoder.onnx")


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_nodes_and_constants_are_those_that_onnx_reads(precision: str, request: pytest.FixtureRequest) -> None:
    synthetic: Synthetic = request.getfixturevalue(precision)
    for file in (synthetic.bundle.encoder, synthetic.bundle.decoder, synthetic.bundle.place, synthetic.bundle.copy):
        expected = onnx.load(file).graph
        graph = Graph(file.read_bytes(), file)
        assert [(node.operator, list(node.inputs)) for node in graph.nodes] == [
            (node.op_type, list(node.input)) for node in expected.node
        ]
        for tensor in expected.initializer:
            constant = graph.constant(tensor.name)
            assert constant is not None
            assert (constant.data_type, list(constant.shape)) == (tensor.data_type, list(tensor.dims))
            if tensor.data_type == INT8:
                np.testing.assert_array_equal(constant.bytes_of(), numpy_helper.to_array(tensor))
        assert graph.constant("no such constant") is None


def elsewhere(tensor: TensorProto) -> TensorProto:
    """Says that the numbers are in another file."""
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    return tensor


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
        (lambda made: elsewhere(made.graph.initializer[0]), "weights are in another file"),
        (lambda made: setattr(made.graph.initializer[0], "data_location", 1), "weights are in another file"),
        (constant_node(value=elsewhere(numpy_helper.from_array(np.zeros(2, np.float32)))), "in another file"),
        (lambda made: made.functions.add(name="f"), "functions, graphs within graphs and sparse weights"),
        (constant_node(then_branch=GraphProto(name="inner")), "functions, graphs within graphs and sparse weights"),
        (lambda made: made.graph.sparse_initializer.add(), "functions, graphs within graphs and sparse weights"),
        (lambda made: made.ClearField("graph"), "it has no graph"),
    ],
)
def test_what_is_not_in_the_file_itself_is_refused(edit: Callable[[ModelProto], object], message: str) -> None:
    with pytest.raises(BundleError, match=message) as caught:
        Graph(model(edit), FILE)
    assert caught.value.message.startswith("decoder.onnx: ")


def test_a_constant_node_is_no_harm() -> None:
    assert [node.operator for node in Graph(model(constant_node(value=VALUE)), FILE).nodes] == ["MatMul", "Constant"]


@pytest.mark.parametrize("content", [b"no graph", b"\xff" * 50, b"ORTM" * 9])
def test_another_file_is_named(content: bytes) -> None:
    with pytest.raises(BundleError, match=r"^decoder\.onnx: it is no ONNX file"):
        Graph(content, FILE)
