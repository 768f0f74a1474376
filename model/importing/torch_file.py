"""Files of torch, such as pytorch_model.bin: tensors by name, and nothing else, memory-mapped.

Such a file has a pickle that describes tensors, and storages with their numbers: in a zip archive or, before torch 1.6,
one after another. No pickle imports or calls foreign code here: the few names that tensors need are mapped to functions
of this module, and any other name is refused.
"""

import io
import math
import mmap
import pickle
import pickletools
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from dragoman.errors import DataError
from model.arrays import BFLOAT16, TYPES, Array, DType

_ENTRY_MARK: Final = b"PK\x03\x04"
_ENTRY: Final = struct.Struct("<4s22xHH")  # before a content in a zip archive: signature, size of name, of extra field
_MAGIC: Final = 0x1950A86A20F9469CFC6C
_PROTOCOL: Final = 1001
_COUNT: Final = struct.Struct("<q")  # before each storage in the old format
_DTYPES: Final[Mapping[str, DType]] = {
    "FloatStorage": np.dtype(np.float32),
    "HalfStorage": np.dtype(np.float16),
    "BFloat16Storage": BFLOAT16,
    "DoubleStorage": np.dtype(np.float64),
    "LongStorage": np.dtype(np.int64),
    "IntStorage": np.dtype(np.int32),
    "ShortStorage": np.dtype(np.int16),
    "CharStorage": np.dtype(np.int8),
    "ByteStorage": np.dtype(np.uint8),
    "BoolStorage": np.dtype(np.bool_),
}


class TorchWeights:
    """The tensors of files, as `model.safetensors_file.Weights`."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Map the files, and read the positions of their tensors.

        Raises:
            DataError: a file is no such file, or contains more than tensors.
        """
        self._arrays: dict[str, Array] = {}
        for file in files:
            try:
                self._arrays |= _arrays(file)
            except Exception as error:  # invalid pickles can raise any exception
                reason = " ".join(str(error).split()) or type(error).__name__
                raise DataError(f"{file}: cannot read the weights: {reason:.200}") from error

    @property
    def names(self) -> Iterable[str]:
        """The names of all tensors."""
        return self._arrays.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """Give the shape of a tensor."""
        return self._arrays[name].shape

    def dtype(self, name: str) -> DType:
        """Tell the type of the values.

        Raises:
            DataError: the type is none of fp32, fp16 and bf16.
        """
        dtype = self._arrays[name].dtype
        if dtype not in TYPES.values():
            known = ", ".join(map(str, TYPES.values()))
            raise DataError(f"weights: {name} is stored as {dtype}, not as one of {known}")
        return dtype

    def read(self, name: str) -> Array:
        """Give a tensor."""
        return self._arrays[name]


class _Storage(NamedTuple):
    key: str
    dtype: DType
    size: int


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


_Find = Callable[[_Storage], Array]  # gives the numbers of a storage


def _arrays(file: Path) -> dict[str, Array]:
    with file.open("rb") as stream:
        content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        is_archive = content[: len(_ENTRY_MARK)] == _ENTRY_MARK
        tensors, find = _archive(stream, content) if is_archive else _old_file(content)
    if not (isinstance(tensors, dict) and all(isinstance(tensor, _Tensor) for tensor in tensors.values())):
        raise ValueError("it holds more than tensors by name")
    return {str(name): _view(tensor, find(tensor.storage)) for name, tensor in tensors.items()}


def _view(tensor: _Tensor, numbers: Array) -> Array:
    """Make a tensor from the numbers of its storage; it may use each number at most once."""
    size = math.prod(tensor.shape)
    last = tensor.offset + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.strides, strict=True))
    if size > len(numbers) or (size and last >= len(numbers)):
        raise ValueError(f"a tensor of shape {list(tensor.shape)} reaches beyond its {len(numbers)} numbers")
    strides = [stride * numbers.itemsize for stride in tensor.strides]
    return as_strided(numbers[tensor.offset :], tensor.shape, strides, writeable=False)


def _archive(stream: BinaryIO, content: mmap.mmap) -> tuple[Any, _Find]:
    """Read a zip archive without compression."""
    # By their names without the top folder, whose name depends on the file.
    entries = {entry.filename.partition("/")[2]: entry for entry in zipfile.ZipFile(stream).infolist()}

    def read(name: str) -> NDArray[np.uint8]:
        if name not in entries:
            raise ValueError(f"it has no {name}")
        entry = entries[name]
        mark, *sizes = _ENTRY.unpack_from(content, entry.header_offset)
        if mark != _ENTRY_MARK or entry.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"its {name} is compressed or damaged")
        return np.frombuffer(content, np.uint8, entry.file_size, entry.header_offset + _ENTRY.size + sum(sizes))

    def find(storage: _Storage) -> Array:
        numbers = read(f"data/{storage.key}")
        if len(numbers) != storage.size * storage.dtype.itemsize:
            raise ValueError(
                f"its storage {storage.key} has {len(numbers)} bytes, not {storage.size} numbers of {storage.dtype}"
            )
        return numbers.view(storage.dtype)

    if "byteorder" in entries and read("byteorder").tobytes() != b"little":
        raise ValueError("its numbers are big-endian")
    return _Unpickler(io.BytesIO(read("data.pkl").tobytes())).load_checked(), find


def _old_file(content: mmap.mmap) -> tuple[Any, _Find]:
    """Read the format before torch 1.6: five pickles, followed by the storages."""

    def load() -> Any:
        return _Unpickler(content).load_checked()

    if load() != _MAGIC or load() != _PROTOCOL:
        raise ValueError("it is no file of torch")
    if load().get("little_endian") is not True:
        raise ValueError("its numbers are big-endian")
    unpickler = _Unpickler(content)
    tensors, keys = unpickler.load_checked(), load()
    if set(keys) != unpickler.storages.keys():
        raise ValueError("it has other storages than its tensors name")
    arrays = {}
    at = content.tell()
    for key in keys:
        storage = unpickler.storages[key]
        (size,) = _COUNT.unpack_from(content, at)
        if size != storage.size:
            raise ValueError(f"its storage {key} has {size} numbers, not {storage.size}")
        arrays[key] = np.frombuffer(content, storage.dtype, size, at + _COUNT.size)
        at += _COUNT.size + arrays[key].nbytes
    return tensors, lambda storage: arrays[storage.key]


class _Tensors(dict[Any, Any]):
    """Replaces OrderedDict."""

    __slots__ = ()

    def __setstate__(self, _: object) -> None:
        """Ignore attributes besides the items: versions of modules."""


class _Function:
    """A function that a pickle may call; no other use is possible."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, _: object) -> None:
        raise pickle.UnpicklingError("it sets what no tensor has")


def _rebuild_tensor(
    storage: Any, offset: Any, shape: Any, strides: Any, _: object, __: object, metadata: object = None
) -> _Tensor:
    """Describe a tensor, as `torch._utils._rebuild_tensor_v2`."""
    known = isinstance(storage, _Storage) and isinstance(shape, tuple) and isinstance(strides, tuple) and not metadata
    if not (known and _are_counts(offset, *shape, *strides)):
        raise pickle.UnpicklingError("it describes a tensor in a way that is not known here")
    return _Tensor(storage, offset, shape, strides)


def _rebuild_parameter(tensor: object, _: object, __: object) -> object:
    return tensor


def _are_counts(*numbers: object) -> bool:
    return all(type(number) is int and number >= 0 for number in numbers)


_NAMES: Final[Mapping[tuple[str, str], object]] = {
    ("collections", "OrderedDict"): _Function(_Tensors),
    ("torch._utils", "_rebuild_tensor_v2"): _Function(_rebuild_tensor),
    ("torch._utils", "_rebuild_parameter"): _Function(_rebuild_parameter),
    **{("torch", name): name for name in _DTYPES},
}


class _Unpickler(pickle.Unpickler):
    """Reads one pickle of a file.

    Attributes:
        storages: the storages that it names, by their keys.
    """

    def __init__(self, stream: BinaryIO | mmap.mmap) -> None:
        super().__init__(stream, encoding="utf-8")
        self.storages: dict[str, _Storage] = {}
        self._stream = stream

    def load_checked(self) -> Any:
        """Read the pickle, unless it would take more memory than its own size."""
        start = self._stream.tell()
        for opcode, place, at in pickletools.genops(self._stream):  # type: ignore[arg-type]
            if "PUT" in opcode.name and place > at:  # type: ignore[operator]
                raise pickle.UnpicklingError("it keeps more objects than it has")
        self._stream.seek(start)
        return self.load()

    def find_class(self, module: str, name: str) -> Any:
        """Give the replacement of a name."""
        try:
            return _NAMES[module, name]
        except KeyError as error:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no tensor needs") from error

    def persistent_load(self, identity: Any) -> _Storage:
        """Describe a storage."""
        kind, name, key, _, size, *view = identity
        if kind != "storage" or name not in _DTYPES or not isinstance(key, str) or not _are_counts(size) or any(view):
            raise pickle.UnpicklingError("it describes a storage in a way that is not known here")
        return self.storages.setdefault(key, _Storage(key, _DTYPES[name], size))
