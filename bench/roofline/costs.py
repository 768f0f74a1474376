"""What an operator of a graph costs at least: multiply-adds and bytes, from the shapes of what it reads and writes.

Bytes count everything once that must be read or written: weights, inputs, results; of keys and values only the valid
positions. A product's weights do not show in its shapes, since the runtime packs them anew when it loads a graph.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

Group = Literal["products", "attentions", "other"]
Peak = Literal["int8_product", "fp32_product", "copy"]

_INT8_PRODUCTS: Final = {"MatMulIntegerToFloat", "MatMulInteger", "DynamicQuantizeMatMul", "QLinearMatMul", "QGemm"}
_FLOAT_PRODUCTS: Final = {"MatMul", "Gemm", "FusedMatMul", "FusedGemm"}
_ITEM_BYTES: Final = {
    "float": 4, "float16": 2, "double": 8, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip
# These take rows out of a large input, or pass it on: what they read is what they write.
_SELECTING: Final = {"Gather", "GatherND", "GatherElements", "Slice"}
_FREE: Final = {"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"}


class Array(NamedTuple):
    """An input or a result: its type as onnxruntime names it, and its shape."""

    type: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * _ITEM_BYTES[self.type]


class Keys(NamedTuple):
    """Valid positions that an attention sees, on average over rows and runs.

    Attributes:
        own: of the sequence that asks.
        source: of the source, in a decoder's attention to it.
    """

    own: float
    source: float


@dataclass(frozen=True)
class Cost:
    """One call of one operator, or several.

    Attributes:
        label: the operator's name; of products and attentions also what tells them from others of that name.
        peak: which measured peak its multiply-adds are held against.
        multiply_adds: 0 for all that is neither a product nor an attention.
    """

    label: str
    group: Group
    peak: Peak
    multiply_adds: float
    bytes: float

    def __add__(self, other: "Cost") -> "Cost":
        return replace(self, multiply_adds=self.multiply_adds + other.multiply_adds, bytes=self.bytes + other.bytes)

    def least_s(self, peaks: Mapping[Peak, float]) -> float:
        """Return the seconds that it takes at the measured peaks: for multiply-adds or for bytes, the longer time."""
        return max(self.multiply_adds / peaks[self.peak], self.bytes / peaks["copy"])


def cost(operator: str, inputs: list[Array], outputs: list[Array], keys: Keys) -> Cost:
    """Compute the cost of one run of an operator.

    Args:
        inputs: without weights that the runtime has packed.
    """
    if operator in _INT8_PRODUCTS:
        return _product(operator, inputs, outputs, "int8_product", weight_bytes=1)
    if operator in _FLOAT_PRODUCTS:
        return _product(operator, inputs, outputs, "fp32_product", _ITEM_BYTES[inputs[0].type])
    if operator.endswith("Attention"):
        return _attention(operator, inputs, outputs, keys)
    return Cost(operator, "other", "fp32_product", 0.0, _moved_bytes(operator, inputs, outputs))


def _product(operator: str, inputs: list[Array], outputs: list[Array], peak: Peak, weight_bytes: int) -> Cost:
    """Count the costs of [..., inner] times [inner, columns]."""
    inner, columns = inputs[0].shape[-1], outputs[0].shape[-1]
    rows = math.prod(outputs[0].shape[:-1])
    moved = inputs[0].size_bytes + outputs[0].size_bytes + inner * columns * weight_bytes
    return Cost(f"{operator} {rows}x{inner}x{columns}", "products", peak, float(rows * inner * columns), float(moved))


def _attention(operator: str, inputs: list[Array], outputs: list[Array], keys: Keys) -> Cost:
    """Compute the cost of queries [rows, queries, width], perhaps packed with new keys and values, in each row."""
    rows, queries, width = outputs[0].shape
    packed = inputs[0].shape[-1] > width
    seen = keys.own if packed else keys.source
    # Of four dimensions are only keys and values; where there are none, they came packed with the queries.
    cached = next((_ITEM_BYTES[each.type] for each in inputs if len(each.shape) == 4), 0)
    written = 2 * rows * queries * width * cached if packed else 0
    moved = inputs[0].size_bytes + outputs[0].size_bytes + 2 * rows * seen * width * cached + written
    multiply_adds = 2.0 * rows * queries * seen * width
    name = f"{operator}, {'own' if packed else 'source'}"
    return Cost(name, "attentions", "fp32_product", multiply_adds, float(moved))


def _moved_bytes(operator: str, inputs: list[Array], outputs: list[Array]) -> float:
    if operator in _FREE:
        return 0.0
    written = sum(each.size_bytes for each in outputs)
    if operator in _SELECTING:
        return 2.0 * written
    return float(written + sum(each.size_bytes for each in inputs))
