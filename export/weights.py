"""The weights of both graphs in one file, each once however many graphs and layers read it."""

import hashlib
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import onnx_ir

from dragoman.bundle import WEIGHTS

# Of a constant; smaller ones stay in the graphs.
_SMALLEST_BYTES: Final = 1024
# Where a constant begins: as processors read memory.
_ALIGNMENT: Final = 64


class WeightsFile:
    """The file `WEIGHTS` of a bundle that is being written."""

    def __init__(self, folder: Path) -> None:
        self._stream = (folder / WEIGHTS).open("wb")
        self._places: dict[bytes, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def take(self, graph: onnx_ir.Graph) -> None:
        """Write the large constants of a graph, which refers to them from then on."""
        for value in graph.initializers.values():
            tensor = value.const_value
            if tensor is not None and tensor.nbytes >= _SMALLEST_BYTES:
                value.const_value = onnx_ir.ExternalTensor(
                    WEIGHTS,
                    self._place(tensor),
                    tensor.nbytes,
                    tensor.dtype,
                    shape=onnx_ir.Shape(tensor.shape.numpy()),
                    name=tensor.name or "",
                )

    def _place(self, tensor: onnx_ir.TensorProtocol) -> int:
        """Find where the numbers of a tensor lie; they are written if they are not there."""
        numbers = tensor.tobytes()
        digest = hashlib.sha256(numbers).digest()
        if digest not in self._places:
            self._stream.write(bytes(-self._stream.tell() % _ALIGNMENT))
            self._places[digest] = self._stream.tell()
            self._stream.write(numbers)
        return self._places[digest]
