"""Tensors and encoder memories in a device's memory, and copies between them."""

import math
from collections.abc import Sequence

import numpy as np
import onnxruntime
from numpy.typing import DTypeLike, NDArray

from dragoman.bundle import BYTES, COPIED, COPY, Bundle
from plugins.gpu.sessions import DEVICE_LOCK, open_graph
from service.runtime.binding import Tensor, bind


class Buffer:
    """A tensor in a device's memory, whose rows are contiguous."""

    def __init__(self, value: onnxruntime.OrtValue, dtype: DTypeLike, device: str) -> None:
        self.value = value
        self.dtype = np.dtype(dtype)
        self.device = device
        self.shape: tuple[int, ...] = tuple(value.shape())

    @classmethod
    def zeros(cls, shape: Sequence[int], dtype: DTypeLike, device: str) -> "Buffer":
        """Reserve memory and fill it with zeros: old content may be NaN, which stays NaN even with a weight of zero."""
        buffer = cls.empty(shape, dtype, device)
        buffer.value.update_inplace(np.zeros(shape, dtype))
        return buffer

    @classmethod
    def empty(cls, shape: Sequence[int], dtype: DTypeLike, device: str) -> "Buffer":
        """Reserve memory with undefined content."""
        return cls(onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, dtype, device, 0), dtype, device)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return int(math.prod(self.shape) * self.dtype.itemsize)

    def rows(self, start: int, count: int) -> Tensor:
        """Describe the memory of `count` rows from `start`."""
        address = self.value.data_ptr() + start * (self.nbytes // self.shape[0])
        return Tensor(self.device, self.dtype, (count, *self.shape[1:]), address)


class DeviceMemory:
    """The encoder memory of one source: the first tokens of a row.

    Attributes:
        buffer: the output for a micro-batch, [batch, source, decoder_layers * 2 * heads * head_dim].
        row: the row of the source in the buffer.
        tensor: the source's own tokens, [1, tokens, decoder_layers * 2 * heads * head_dim].
    """

    def __init__(self, buffer: Buffer, row: int, tokens: int, copies: "Copies") -> None:
        self.buffer = buffer  # this reference keeps the memory of the buffer alive
        self.row = row
        self._copies = copies
        whole = buffer.rows(row, 1)
        self.tensor = whole._replace(shape=(1, tokens, *whole.shape[2:]))

    @property
    def nbytes(self) -> int:
        """Bytes of the source's own tokens."""
        return self.tensor.nbytes

    def copy(self) -> "DeviceMemory":
        """Copy the memory into a buffer of its own, on the device."""
        with DEVICE_LOCK:
            buffer = Buffer.empty(self.tensor.shape, self.tensor.dtype, self.tensor.device)
            self._copies.copy(self.tensor, buffer.rows(0, 1))
        return DeviceMemory(buffer, 0, self.tensor.shape[1], self._copies)

    def __array__(self, dtype: DTypeLike | None = None) -> NDArray[np.generic]:
        """Copy the memory to the host, [source tokens, decoder_layers * 2 * heads * head_dim]."""
        numbers: NDArray[np.generic] = np.empty(self.tensor.shape[1:], self.tensor.dtype)
        with DEVICE_LOCK:
            self._copies.copy(self.tensor, Tensor.of(numbers))
        return numbers if dtype is None else numbers.astype(dtype)


class Copies:
    """Copies within a device's memory, and from the device to the host."""

    def __init__(self, bundle: Bundle, device: str) -> None:
        """Load the graph.

        Raises:
            BundleError: the graph cannot be loaded.
        """
        self._session = open_graph(bundle, COPY, device)

    def copy(self, source: Tensor, target: Tensor) -> None:
        """Copy all bytes of a tensor over another tensor of the same size."""
        binding = bind(self._session, {BYTES: _as_bytes(source)}, {COPIED: _as_bytes(target)})
        self._session.run_with_iobinding(binding)

    def close(self) -> None:
        """Close the session."""
        with DEVICE_LOCK:
            del self._session


def _as_bytes(tensor: Tensor) -> Tensor:
    """Describe the same memory as int8 [bytes]."""
    return tensor._replace(dtype=np.dtype(np.int8), shape=(tensor.nbytes,))
