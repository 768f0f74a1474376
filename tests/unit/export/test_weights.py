"""The file of the weights: what lies in it, how often, and that a bundle's graphs are small beside it."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
import onnx
import onnx_ir
import pytest

from dragoman.bundle import Bundle, Precision
from export.weights import WeightsFile


class Exported(Protocol):
    """Of the fixture `exported`."""

    bundle: Bundle


def graph(**constants: np.ndarray) -> onnx_ir.Graph:
    values = [
        onnx_ir.Value(name=name, const_value=onnx_ir.tensor(numbers, name=name)) for name, numbers in constants.items()
    ]
    return onnx_ir.Graph([], [], nodes=[], initializers=values, name="g")


def places(one: onnx_ir.Graph) -> dict[str, int | None]:
    tensors = {name: value.const_value for name, value in one.initializers.items()}
    return {
        name: tensor.offset if isinstance(tensor, onnx_ir.ExternalTensor) else None for name, tensor in tensors.items()
    }


def test_equal_constants_lie_there_once_and_small_ones_do_not(tmp_path: Path) -> None:
    numbers = np.arange(257, dtype=np.float32)
    first, second = graph(a=numbers, b=numbers + 1, small=numbers[:4]), graph(c=numbers + 1, d=-numbers)
    with WeightsFile(tmp_path) as weights:
        weights.take(first)
        weights.take(second)
    assert places(first) == {"a": 0, "b": 1088, "small": None}
    assert places(second) == {"c": 1088, "d": 2176}
    content = (tmp_path / "weights.bin").read_bytes()
    assert len(content) == 2176 + 1028
    assert content[1088:2116] == (numbers + 1).tobytes()


@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
def test_the_embeddings_of_both_graphs_lie_in_one_place(
    exported: Callable[[Precision], Exported], precision: Precision
) -> None:
    bundle = exported(precision).bundle
    offsets = []
    for file in (bundle.encoder, bundle.decoder):
        tensors = {one.name: one for one in onnx.load(file, load_external_data=False).graph.initializer}
        [name] = [name for name, one in tensors.items() if list(one.dims) == [400, 32] and "embedding" in name]
        offsets.append({entry.key: entry.value for entry in tensors[name].external_data}["offset"])
        assert all(len(one.raw_data) < 1024 for one in tensors.values())
    assert len(set(offsets)) == 1
