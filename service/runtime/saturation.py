"""Proof that the 8-bit products of a graph are exact on every processor; arithmetic on its weights.

ONNX Runtime's products of unsigned by signed bytes add two neighbours along a column of the weights in 16 bits on
x86 processors with AVX2 or AVX-512 but without VNNI. Beyond 32,767 such a sum saturates: the result is another one,
and nobody is told. An input is at most 255, so two weights of the same sign may add up to 128.
"""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import BundleError
from service.runtime.onnx_file import INT8, UINT8, Graph, Node

LARGEST_SUM: Final = 32_767 // 255
# Both run the same kernels, and have the weights as their second input.
_PRODUCTS: Final = frozenset({"MatMulInteger", "MatMulIntegerToFloat"})
_WEIGHTS: Final = 1
# Other operators of 8 bits, of whose kernels nothing is known here.
_UNKNOWN: Final = frozenset(
    {"ConvInteger", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "QAttention", "QGemm", "QLinearConv"}
    | {"QLinearMatMul", "QMoE", "QOrderedMatMul"}
)


def check_products(content: bytes, file: Path) -> None:
    """Prove that no product of a graph can saturate.

    Args:
        content: of an ONNX file.
        file: its name, for messages.

    Raises:
        BundleError: it is no such file, a product may saturate, or it is not known whether it may.
    """
    graph = Graph(content, file)
    for node in graph.nodes:
        if node.operator in _PRODUCTS:
            _check_weights(graph, node.inputs[_WEIGHTS], file)
        elif node.operator in _UNKNOWN or _reads_weights(graph, node):
            raise BundleError(f"{file}: {node.operator} of 8 bits: it is not known whether it is exact everywhere")


def largest_sum(weights: NDArray[np.int8]) -> int:
    """Compute what two neighbours along a column add up to at most, those of one sign alone.

    Args:
        weights: [inputs, outputs].
    """
    rows = np.pad(weights, ((0, len(weights) % 2), (0, 0))).astype(np.int16)
    sums = [np.maximum(sign * rows, 0) for sign in (1, -1)]
    return max(int((part[::2] + part[1::2]).max(initial=0)) for part in sums)


def _check_weights(graph: Graph, name: str, file: Path) -> None:
    constant = graph.constant(name)
    if constant is not None and constant.data_type == UINT8:
        return  # unsigned by unsigned bytes: these kernels add in 32 bits
    weights = constant.bytes_of() if constant is not None and constant.data_type == INT8 else None
    if weights is None or weights.ndim != 2:
        raise BundleError(f"{file}: {name}: the weights of an 8-bit product are no constant matrix of bytes")
    if (largest := largest_sum(weights)) > LARGEST_SUM:
        raise BundleError(
            f"{file}: {name}: two neighbouring weights add up to {largest}, and above {LARGEST_SUM} a product is wrong "
            "on processors without VNNI; export the bundle again"
        )


def _reads_weights(graph: Graph, node: Node) -> bool:
    """Tell whether a node reads a matrix of bytes."""
    constants = (graph.constant(name) for name in node.inputs)
    return any(one is not None and one.data_type in (INT8, UINT8) and len(one.shape) > 1 for one in constants)
