"""Marian's binary files, such as model.ende.intgemm.alphas.bin of Firefox: arrays by name, memory-mapped.

The format is that of Marian's own reader (src/common/binary.cpp): a version, a header for each item, their names, their
shapes, padding, their contents. All numbers are little-endian.
"""

import math
import mmap
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from model.arrays import Array, DType

_VERSION: Final = 1
_HEADER: Final = struct.Struct("<QQQQ")  # sizes of name, type, dimensions and content
_MOST_DIMENSIONS: Final = 4
_FLOAT32: Final = 0x0404
_INT8: Final = 0x0101
_INTGEMM8: Final = 0x4101
# The factors of the inputs of Marian's integer products; the values of a weight do not depend on them.
_INPUT_FACTOR: Final = "_QuantMultA"
# An embedding table is stored by rows, one per piece; any other matrix by columns.
_BY_ROWS: Final = "Wemb"


class _Item(NamedTuple):
    kind: int
    shape: tuple[int, ...]
    start: int


class MarianBin:
    """The arrays of a file by Marian's names; int8 arrays are read as fp32 values."""

    def __init__(self, file: Path) -> None:
        """Map a file, and read the positions of its items.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is no such file, of another version, or truncated.
        """
        with file.open("rb") as stream:
            self._content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self._items = self._read()

    @property
    def names(self) -> Iterable[str]:
        """All arrays except input factors."""
        return [name for name in self._items if not name.endswith(_INPUT_FACTOR)]

    def header(self, name: str) -> tuple[tuple[int, ...], DType]:
        """Give the shape and the type of the array that `read` returns."""
        item = self._items[name]
        return item.shape, np.dtype(np.int8 if item.kind == _INT8 else np.float32)

    def read(self, name: str) -> Array:
        """Read an array."""
        kind, shape, start = self._items[name]
        count = math.prod(shape)
        if kind != _INTGEMM8:
            return np.frombuffer(self._content, self.header(name)[1], count, start).reshape(shape)
        levels = np.frombuffer(self._content, np.int8, count, start)
        factor = np.frombuffer(self._content, np.float32, 1, start + count)[0]
        levels = levels.reshape(shape) if name.endswith(_BY_ROWS) else levels.reshape(shape[::-1]).T
        return levels.astype(np.float32) / factor  # type: ignore[no-any-return]

    def _read(self) -> dict[str, _Item]:
        version, count = struct.unpack("<QQ", self._bytes(0, 16))
        if version != _VERSION:
            raise ValueError(f"its format is version {version}, known is {_VERSION}")
        at = 16 + count * _HEADER.size
        headers = list(_HEADER.iter_unpack(self._bytes(16, count * _HEADER.size)))
        names = []
        for length, *_ in headers:
            names.append(self._bytes(at, length).rstrip(b"\0").decode())
            at += length
        shapes = []
        for name, (_, _, dimensions, _) in zip(names, headers, strict=True):
            if dimensions > _MOST_DIMENSIONS:
                raise ValueError(f"{name} has {dimensions} dimensions")
            shapes.append(struct.unpack(f"<{dimensions}i", self._bytes(at, 4 * dimensions)))
            at += 4 * dimensions
        (padding,) = struct.unpack("<Q", self._bytes(at, 8))
        at += 8 + padding
        items = {}
        for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
            items[name] = self._item(name, kind, shape, at, size)
            at += size
        return items

    def _item(self, name: str, kind: int, shape: tuple[int, ...], start: int, size: int) -> _Item:
        """Check that the content of an item is complete, and that its size matches its shape."""
        self._check_end(start + size)
        sizes = {_FLOAT32: 4 * math.prod(shape), _INT8: math.prod(shape), _INTGEMM8: math.prod(shape) + 4}
        if kind not in sizes:
            raise ValueError(f"{name} is of type 0x{kind:04x}; supported are fp32, int8 and intgemm8")
        if min(shape, default=1) < 1 or sizes[kind] > size:
            raise ValueError(f"{name} has {size} bytes, too few for its shape {list(shape)}")
        if kind == _INTGEMM8:
            (factor,) = struct.unpack("<f", self._bytes(start + math.prod(shape), 4))
            if not (len(shape) == 2 and 0 < factor < math.inf):
                raise ValueError(f"{name} has the shape {shape} and the scale {factor}")
        return _Item(kind, shape, start)

    def _bytes(self, start: int, size: int) -> bytes:
        self._check_end(start + size)
        return self._content[start : start + size]

    def _check_end(self, end: int) -> None:
        if end > len(self._content):
            raise ValueError(f"it has {len(self._content)} bytes, and should go on to byte {end}")
