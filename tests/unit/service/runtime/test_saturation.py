"""The proof that 8-bit products are exact, against arithmetic in 64 bits and against the products of this processor."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from dragoman.errors import BundleError
from service.runtime.onnx_file import Graph
from service.runtime.saturation import LARGEST_SUM, check_products, largest_sum
from service.runtime.sessions import open_session

FILE = Path("encoder.onnx")
EXTREMES = np.array([-128, -127, -64, -1, 0, 1, 64, 127], np.int8)


def graph(*nodes: NodeProto, **constants: NDArray[np.generic]) -> bytes:
    """From `a`, uint8 [rows, inputs], to `y`."""
    result = TensorProto.FLOAT if nodes[-1].op_type == "QGemm" else TensorProto.INT32
    described = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("a", TensorProto.UINT8, ["rows", "inputs"])],
        [helper.make_tensor_value_info("y", result, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    content: bytes = helper.make_model(described, opset_imports=opsets, ir_version=10).SerializeToString()
    return content


def product(weights: NDArray[np.generic], operator: str = "MatMulInteger") -> bytes:
    zero = np.array(128 if weights.dtype == np.uint8 else 0, weights.dtype)
    if operator == "QGemm":
        inputs = ["a", "one", "zero_a", "weights", "ones", "zeros"]
        node = helper.make_node(operator, inputs, ["y"], domain="com.microsoft")
        columns = weights.shape[1]
        scales = {"one": np.float32(1), "ones": np.ones(columns, np.float32)}
        return graph(node, weights=weights, zero_a=np.uint8(0), zeros=np.full(columns, zero), **scales)
    node = helper.make_node(operator, ["a", "weights", "", "zero"], ["y"])
    return graph(node, weights=weights, zero=zero)


def check(content: bytes) -> None:
    check_products(Graph(content, FILE), FILE)


def refusal(content: bytes) -> str:
    with pytest.raises(BundleError) as caught:
        check(content)
    assert "\n" not in caught.value.message
    assert caught.value.message.startswith("encoder.onnx: ")
    return caught.value.message


@settings(deadline=None, max_examples=50)
@given(inputs=st.integers(1, 9), outputs=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_the_largest_sum_is_that_of_neighbours_of_one_sign(inputs: int, outputs: int, seed: int) -> None:
    weights = np.random.default_rng(seed).choice(EXTREMES, (inputs, outputs))
    expected = 0
    for column in weights.T.tolist():
        for first in range(0, inputs, 2):
            pair = column[first : first + 2]
            expected = max(expected, sum(one for one in pair if one > 0), -sum(one for one in pair if one < 0))
    assert largest_sum(weights) == expected


def test_the_bound_is_where_sixteen_bits_end() -> None:
    assert 255 * LARGEST_SUM <= 2**15 - 1 < 255 * (LARGEST_SUM + 1)


@pytest.mark.parametrize("operator", ["MatMulInteger", "QGemm"])
@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("inputs", [6, 33, 256])
def test_weights_that_pass_give_exact_products_here(rows: int, inputs: int, operator: str) -> None:
    """On processors without VNNI this fails for weights whose neighbours add up to more."""
    random = np.random.default_rng(inputs)
    weights = random.integers(-64, 65, (inputs, 17), dtype=np.int8)
    weights[0], weights[1] = 127, 1
    weights[2], weights[3] = -1, -127
    weights[4], weights[5] = -127, 127
    session = open_session(product(weights, operator), FILE)
    for given_rows in (np.full((rows, inputs), 255, np.uint8), random.choice(np.uint8([0, 255]), (rows, inputs))):
        [result] = session.run(None, {"a": given_rows})
        np.testing.assert_array_equal(result, given_rows.astype(np.int64) @ weights.astype(np.int64))


def test_unsigned_weights_are_exact_whatever_they_are() -> None:
    weights = np.random.default_rng(0).choice(np.uint8([0, 255]), (64, 17))
    session = open_session(product(weights), FILE)
    rows = np.full((3, 64), 255, np.uint8)
    [result] = session.run(None, {"a": rows})
    np.testing.assert_array_equal(result, rows.astype(np.int64) @ (weights.astype(np.int64) - 128))


@pytest.mark.parametrize("operator", ["MatMulInteger", "MatMulIntegerToFloat", "QGemm"])
@pytest.mark.parametrize("sign", [1, -1])
def test_weights_that_may_saturate_are_refused(operator: str, sign: int) -> None:
    weights = np.zeros((4, 3), np.int8)
    weights[2:, 1] = sign * np.array([100, LARGEST_SUM - 100])
    check(product(weights, operator))
    weights[2, 1] += sign
    message = refusal(product(weights, operator))
    assert "weights: two neighbouring weights add up to 129, and above 128" in message
    assert message.endswith("export the bundle again")


def test_a_session_of_such_weights_is_not_opened() -> None:
    with pytest.raises(BundleError, match="export the bundle again"):
        open_session(product(np.full((4, 3), 127, np.int8)), FILE)


def test_weights_that_cannot_be_looked_at_are_refused() -> None:
    message = "the weights of an 8-bit product are no constant matrix of bytes"
    computed = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    assert message in refusal(graph(helper.make_node("Identity", ["c"], ["b"]), computed, c=np.zeros(3, np.int8)))
    assert message in refusal(product(np.zeros((2, 4, 3), np.int8)))
    assert message in refusal(product(np.zeros((4, 3), np.float32)))
    content = bytes(product(np.zeros((4, 3), np.int8)))
    other_form = TensorProto(name="weights", dims=[4, 3], data_type=TensorProto.INT8, int32_data=[0] * 12)
    described = helper.make_graph([computed], "g", [], [], [other_form])
    described.node[0].input[1] = "weights"
    assert message in refusal(helper.make_model(described).SerializeToString())
    check(content)


@pytest.mark.parametrize("operator", ["QLinearMatMul", "DynamicQuantizeMatMul", "ConvInteger", "QAttention"])
def test_other_products_of_eight_bits_are_refused(operator: str) -> None:
    assert f"{operator} of 8 bits" in refusal(graph(helper.make_node(operator, ["a", "b"], ["y"])))


def test_a_matrix_of_bytes_that_something_else_reads_is_refused() -> None:
    """ONNX Runtime makes an 8-bit product of a plain one between conversions."""
    node = helper.make_node("DequantizeLinear", ["weights", "scale"], ["y"])
    content = graph(node, weights=np.zeros((4, 3), np.int8), scale=np.float32(1))
    assert "DequantizeLinear of 8 bits" in refusal(content)


def test_rows_of_a_matrix_of_bytes_may_be_looked_up() -> None:
    check(graph(helper.make_node("Gather", ["table", "a"], ["y"]), table=np.full((4, 3), 127, np.int8)))


def test_a_large_matrix_is_looked_at_to_its_end() -> None:
    weights = np.zeros((7, 2**18), np.int8)
    weights[4:6, -1] = 127
    assert largest_sum(weights) == 254
    weights[6, 0] = -128
    weights[4:6, -1] = 0
    assert largest_sum(weights) == 128


def test_what_is_no_product_of_bytes_is_not_looked_at() -> None:
    node = helper.make_node("MatMul", ["a", "weights"], ["y"])
    check(graph(node, weights=np.full((4, 3), 1e9, np.float32)))
