"""An ONNX graph, built node by node; its large constants go to the weights file of the bundle."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from dragoman.bundle import WEIGHTS
from export.weights import Place, WeightsFile

OPSET: Final = 20
IR_VERSION: Final = 10
CONTRIB: Final = "com.microsoft"
_CONTRIB_VERSION: Final = 1
_SMALLEST_BYTES: Final = 1024  # smaller constants stay in the graph

Size = str | int | None  # of a dimension: its name, its size, or None for any size


class Graph:
    """A graph under construction; values are names, and "" stands for an absent input or output."""

    def __init__(self, weights: WeightsFile | None = None) -> None:
        """Begin a graph without nodes.

        Args:
            weights: the file for the large constants; None: the graph has none.
        """
        self._weights = weights
        self._nodes: list[NodeProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []
        self._constants: list[TensorProto] = []
        self._names: dict[tuple[str, tuple[int, ...], bytes], str] = {}  # of constants, by type, shape and content
        self._domains = {""}

    def input(
        self, name: str, dtype: type[np.generic], shape: Sequence[Size], default: NDArray[np.generic] | None = None
    ) -> str:
        """Add an input of the graph, with a default if nothing is given for it; returns its name."""
        self._inputs.append(_value(name, dtype, shape))
        if default is not None:
            self._add(default, np.dtype(dtype), name)
        return name

    def output(self, name: str, dtype: type[np.generic], shape: Sequence[Size]) -> None:
        """Make the value of this name an output of the graph."""
        self._outputs.append(_value(name, dtype, shape))

    def node(self, operator: str, *inputs: str, name: str = "", domain: str = "", **attributes: Any) -> str:
        """Add an operator with one output.

        Args:
            operator: the type of the operator.
            inputs: names of values; trailing empty names are left out.
            name: the name of the output; "": a new name.
            domain: the domain of the operator.
            attributes: the attributes of the operator; None is left out.

        Returns:
            The name of the output.
        """
        return self.nodes(operator, *inputs, names=[name or self._new(operator)], domain=domain, **attributes)[0]

    def nodes(
        self, operator: str, *inputs: str, names: Sequence[str], domain: str = "", **attributes: Any
    ) -> Sequence[str]:
        """Add an operator whose outputs have these names; returns the names."""
        node = helper.make_node(operator, inputs, names, domain=domain, **attributes)
        while node.input and not node.input[-1]:
            node.input.pop()
        self._nodes.append(node)
        self._domains.add(domain)
        return names

    def constant(self, value: NDArray[np.generic] | np.generic | Sequence[int], dtype: Any = None) -> str:
        """Add a constant, or reuse an equal one.

        Args:
            value: an array of any type, or whole numbers.
            dtype: the type to write; None: the type of the array, int64 for whole numbers.
        """
        array = np.asarray(value, None if isinstance(value, np.ndarray | np.generic) else np.int64)
        return self._add(array, np.dtype(array.dtype if dtype is None else dtype))

    def _add(self, array: NDArray[np.generic], dtype: np.dtype[Any], name: str = "") -> str:
        """Add a constant of this name; without a name, reuse an equal one."""
        place = None
        if self._weights is not None and array.size * dtype.itemsize >= _SMALLEST_BYTES:
            place = self._weights.place(array, dtype)
            content = place.offset.to_bytes(8, "little")
        else:
            array = np.ascontiguousarray(array.astype(dtype, copy=False)).reshape(array.shape)
            content = array.tobytes()
        key = (dtype.name, array.shape, content)
        if not name and key in self._names:
            return self._names[key]
        if not name:
            self._names[key] = name = f"constant_{len(self._names)}"
        self._constants.append(
            numpy_helper.from_array(array, name) if place is None else _in_file(name, dtype, array.shape, place)
        )
        return name

    def _new(self, operator: str) -> str:
        return f"{operator}_{len(self._nodes)}"

    def save(self, file: Path) -> None:
        """Write the graph."""
        versions = {"": OPSET, CONTRIB: _CONTRIB_VERSION}
        graph = helper.make_graph(self._nodes, file.stem, self._inputs, self._outputs, self._constants)
        imports = [helper.make_opsetid(domain, versions[domain]) for domain in sorted(self._domains)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
        if self._weights is None:  # the checker cannot read weights that are still being written, nor other domains
            onnx.checker.check_model(model, full_check=True)
        onnx.save(model, file)


def _in_file(name: str, dtype: np.dtype[Any], shape: tuple[int, ...], place: Place) -> TensorProto:
    tensor = TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(dtype), dims=shape)
    tensor.data_location = TensorProto.EXTERNAL
    for entry, told in (("location", WEIGHTS), ("offset", place.offset), ("length", place.size)):
        tensor.external_data.add(key=entry, value=str(told))
    return tensor


def _value(name: str, dtype: type[np.generic], shape: Sequence[Size]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
