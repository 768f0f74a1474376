"""The file model.bin of CTranslate2: variables by name, memory-mapped.

Its format is that of CTranslate2's own reader (src/models/model.cc): a header, then name, rank, dimensions, type, size
and content of each variable, then aliases.
"""

import math
import mmap
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from dragoman.errors import DataError
from model.arrays import BFLOAT16, Array, DType
from model.importing.start_row import shape_with_start, with_start

_VERSIONS: Final = (4, 5, 6)
# By CTranslate2's type numbers.
_TYPES: Final = (*map(np.dtype, (np.float32, np.int8, np.int16, np.int32, np.float16)), BFLOAT16)
_SCALE: Final = "_scale"  # suffix of the scales of an integer weight
_MOST_DIMENSIONS: Final = 4
# Variables with a row for each piece.
_OF_PIECES: Final = (
    "encoder/embeddings/weight",
    "encoder/embeddings_0/weight",
    "decoder/embeddings/weight",
    "decoder/projection/weight",
    "decoder/projection/bias",
)


class _Variable(NamedTuple):
    dtype: DType
    shape: tuple[int, ...]
    start: int
    size: int


class Ct2Weights:
    """The weights of a file, as `model.safetensors_file.Weights`; what is in whole numbers is read as fp32.

    Attributes:
        specification: the kind of model, such as "TransformerSpec".
        from_zeros: whether decoding starts without a token. Then embeddings and output have one more row.
    """

    def __init__(self, file: Path) -> None:
        """Map a file, and read the positions of its variables.

        Raises:
            DataError: the file is no such file, of an unknown version, or truncated.
        """
        self._file = file
        try:
            with file.open("rb") as stream:
                self._content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            self._read()
        except (OSError, ValueError, struct.error, IndexError) as error:
            raise DataError(f"{file}: cannot read a model of CTranslate2: {error}") from error
        self.from_zeros = bool(self.setting("decoder/start_from_zero_embedding", 0))
        self._of_pieces = {self.original(name) for name in _OF_PIECES if self.from_zeros}

    @property
    def names(self) -> Iterable[str]:
        """All weights, without scales, settings and aliases."""
        return [name for name, variable in self._variables.items() if variable.shape and self._is_weight(name)]

    def _is_weight(self, name: str) -> bool:
        is_whole = _is_whole(self._variables[name].dtype)
        return name + _SCALE in self._variables or not (is_whole or name.endswith(_SCALE))

    def has(self, name: str) -> bool:
        """Tell whether a variable or an alias of this name exists."""
        return name in self._variables or name in self._aliases

    def original(self, name: str) -> str:
        """Give the name of an alias's variable; any other name is returned unchanged."""
        return self._aliases.get(name, name)

    def shape(self, name: str) -> tuple[int, ...]:
        """Give the shape of a weight, without reading it."""
        shape = self._variable(name).shape
        return shape_with_start(shape) if self.original(name) in self._of_pieces else shape

    def dtype(self, name: str) -> DType:
        """Give the type of the values that `read` returns."""
        dtype = self._variable(name).dtype
        return np.dtype(np.float32) if _is_whole(dtype) else dtype

    def read(self, name: str) -> Array:
        """Read a weight; integers are divided by their scale, one per row or one for all."""
        array = self._numbers(name)
        return with_start(array) if self.original(name) in self._of_pieces else array

    def _numbers(self, name: str) -> Array:
        array = self._array(self._variable(name))
        if not _is_whole(array.dtype):
            return array
        scale = self._array(self._variable(self.original(name) + _SCALE)).astype(np.float32)
        return array.astype(np.float32) / (scale[:, None] if scale.ndim else scale)

    def setting(self, name: str, default: float) -> float:
        """Read a variable that is a single number."""
        if not self.has(name):
            return default
        return float(self._array(self._variable(name)).flat[0])

    def _variable(self, name: str) -> _Variable:
        try:
            return self._variables[self.original(name)]
        except KeyError as error:
            raise DataError(f"{self._file}: there is no {name}") from error

    def _array(self, variable: _Variable) -> Array:
        count = variable.size // variable.dtype.itemsize
        return np.frombuffer(self._content, variable.dtype, count, variable.start).reshape(variable.shape)

    def _read(self) -> None:
        self._at = 0
        version = self._number("I")
        if version not in _VERSIONS:
            known = ", ".join(map(str, _VERSIONS))
            raise ValueError(f"its format is version {version}, known are {known}")
        self.specification = self._text()
        self._number("I")  # the revision of the specification; not needed, since the names show it
        self._variables: dict[str, _Variable] = {}
        for _ in range(self._number("I")):
            name = self._text()
            rank = self._number("B")
            if rank > _MOST_DIMENSIONS:
                raise ValueError(f"{name} has {rank} dimensions")
            shape = tuple(self._number("I") for _ in range(rank))
            dtype, size = _TYPES[self._number("B")], self._number("I")
            if size != dtype.itemsize * math.prod(shape) or self._at + size > len(self._content):
                raise ValueError(f"{name} is cut off, or has another size than its shape says")
            self._variables[name] = _Variable(dtype, shape, self._at, size)
            self._at += size
        self._aliases = {self._text(): self._text() for _ in range(self._number("I"))}

    def _number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f"<{kind}", self._content, self._at)
        self._at += struct.calcsize(kind)
        return int(value)

    def _text(self) -> str:
        size = self._number("H")
        text: Any = self._content[self._at : self._at + size - 1]  # a string ends with a zero byte
        self._at += size
        return bytes(text).decode()


def _is_whole(dtype: DType) -> bool:
    return np.issubdtype(dtype, np.integer)
