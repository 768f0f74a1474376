"""Proof that the 8-bit products of a graph are exact on every processor; arithmetic on its weights.

ONNX Runtime's products of unsigned by signed bytes add two neighbours along a column of the weights in 16 bits on
x86 processors with AVX2 or AVX-512 but without VNNI. Beyond 32,767 such a sum saturates: the result is wrong, and no
error is raised. An input is at most 255, so two weights of the same sign may add up to 128 at most.
"""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import BundleError
from service.runtime.onnx_file import INT8, UINT8, Graph, Node

LARGEST_SUM: Final = 32_767 // 255
# These run the same kernels; and which of their inputs are the weights.
PRODUCTS: Final = {"MatMulInteger": 1, "MatMulIntegerToFloat": 1, "QGemm": 3}
# Other 8-bit operators, whose kernels are not known here.
_UNKNOWN: Final = frozenset(
    {"ConvInteger", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "QAttention", "QLinearConv"}
    | {"QLinearMatMul", "QMoE", "QOrderedMatMul"}
)
_HARMLESS: Final = frozenset({"Gather"})  # copies
_PART_BYTES: Final = 2**18


def check_products(graph: Graph, file: Path) -> None:
    """Prove that no product of a graph can saturate.

    Raises:
        BundleError: a product may saturate, or it is not known whether it may.
    """
    for node in graph.nodes:
        if node.operator in PRODUCTS:
            _check_weights(graph, node.inputs[PRODUCTS[node.operator]], file)
        elif node.operator in _UNKNOWN or (node.operator not in _HARMLESS and _reads_weights(graph, node)):
            raise BundleError(f"{file}: {node.operator} of 8 bits: it is not known whether it is exact everywhere")


def largest_sum(weights: NDArray[np.int8]) -> int:
    """Compute the largest absolute sum of two neighbours of one sign along a column.

    Args:
        weights: [inputs, outputs].
    """
    if len(weights) % 2:
        last = np.zeros((2, weights.shape[1]), np.int8)
        last[0] = weights[-1]
        return max(largest_sum(weights[:-1]), largest_sum(last))
    pairs = weights.reshape(-1, 2, weights.shape[1])
    step = max(1, _PART_BYTES // max(1, 2 * weights.shape[1]))
    return max((_largest_sum(pairs[start : start + step]) for start in range(0, len(pairs), step)), default=0)


def _largest_sum(pairs: NDArray[np.int8]) -> int:
    """Do `largest_sum` for weights [pairs, 2, outputs] that fit into a processor's cache."""
    # Two neighbours of unlike signs add up to less than the larger of the two.
    sums = np.add(pairs[:, 0], pairs[:, 1], dtype=np.int16)
    return max(max(int(part.max(initial=0)), -int(part.min(initial=0))) for part in (sums, pairs))


def _check_weights(graph: Graph, name: str, file: Path) -> None:
    constant = graph.constants.get(name)
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
    constants = (graph.constants.get(name) for name in node.inputs)
    return any(one is not None and one.data_type in (INT8, UINT8) and len(one.shape) > 1 for one in constants)
