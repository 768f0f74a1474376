"""Files of torch, against torch.load; and files that somebody has made to do harm."""

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._utils import _rebuild_parameter, _rebuild_tensor_v2

from dragoman.errors import DataError
from model.arrays import BFLOAT16, Array
from model.importing.torch_file import TorchWeights

TYPES = {
    torch.float32: np.float32,
    torch.float16: np.float16,
    torch.bfloat16: BFLOAT16,
    torch.float64: np.float64,
    torch.int64: np.int64,
    torch.int8: np.int8,
    torch.bool: np.bool_,
}
NAME = "pytorch_model.bin"
both_formats = pytest.mark.parametrize("as_zip", [True, False])


def save(content: object, file: Path, *, as_zip: bool) -> Path:
    torch.save(content, file, _use_new_zipfile_serialization=as_zip)
    return file


def check(file: Path) -> None:
    """Compares what is read of a file with what torch reads."""
    weights = TorchWeights([file])
    expected = torch.load(file, weights_only=True)
    assert list(weights.names) == list(expected)
    for name, tensor in expected.items():
        array = weights.read(name)
        assert weights.shape(name) == array.shape == tuple(tensor.shape)
        assert array.dtype == TYPES[tensor.dtype]
        assert array.astype(np.float64).tolist() == tensor.double().tolist()  # which hold any of the values


@st.composite
def tensors(draw: st.DrawFn) -> dict[str, torch.Tensor]:
    """Draws tensors and views of them, which share their storages."""
    found: dict[str, torch.Tensor] = {}
    for number in range(draw(st.integers(1, 4))):
        shape = draw(st.lists(st.integers(0, 5), max_size=4))
        tensor = (99 * torch.rand(shape)).to(draw(st.sampled_from(list(TYPES))))
        found[f"{number}"] = tensor
        if tensor.dim() and tensor.shape[-1] > 1:
            views = (tensor.transpose(0, -1), tensor[..., 1:], tensor[..., ::2], tensor[..., 1], tensor)
            found[f"{number}.view"] = draw(st.sampled_from(views))
    return found


@both_formats
@given(content=tensors())
def test_tensors_and_views(as_zip: bool, content: dict[str, torch.Tensor]) -> None:
    with TemporaryDirectory() as folder:
        check(save(content, Path(folder, NAME), as_zip=as_zip))


@both_formats
def test_what_models_are_saved_as(as_zip: bool, tmp_path: Path) -> None:
    """The dictionary of a module knows the versions of its parts."""
    module = torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).bfloat16()
    module.register_buffer("mask", torch.tensor([True, False]))
    check(save(module.state_dict(), tmp_path / NAME, as_zip=as_zip))
    check(save(OrderedDict(module.named_parameters()), tmp_path / NAME, as_zip=as_zip))


@both_formats
def test_tensors_that_share_a_storage_share_memory(as_zip: bool, tmp_path: Path) -> None:
    table = torch.rand(4, 3)
    weights = TorchWeights([save({"a": table, "b": table}, tmp_path / NAME, as_zip=as_zip)])
    assert np.shares_memory(weights.read("a"), weights.read("b"))
    assert not weights.read("a").flags.writeable


def test_several_files(tmp_path: Path) -> None:
    files = [save({name: torch.rand(2)}, tmp_path / f"{name}.bin", as_zip=True) for name in "ab"]
    assert list(TorchWeights(files).names) == ["a", "b"]


def test_types_that_no_checkpoint_has_are_read_but_not_written(tmp_path: Path) -> None:
    weights = TorchWeights([save({"a": torch.zeros(2, dtype=torch.float64)}, tmp_path / NAME, as_zip=True)])
    with pytest.raises(DataError, match="a is stored as float64, not as one of float32, float16, bfloat16"):
        weights.dtype("a")


class Calls(NamedTuple):
    """Pickled, it is a call."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    state: Any = None

    def __reduce__(self) -> Any:
        return (self.function, self.arguments) if self.state is None else (self.function, self.arguments, self.state)


class Stored(NamedTuple):
    """Pickled, it is a storage."""

    size: object = 4
    kind: object = torch.FloatStorage
    key: object = "0"
    word: str = "storage"


class Pickler(pickle.Pickler):
    def persistent_id(self, value: object) -> Any:
        return (value.word, value.kind, value.key, "cpu", value.size) if isinstance(value, Stored) else None


def pickled(content: object, protocol: int = 2) -> bytes:
    stream = io.BytesIO()
    Pickler(stream, protocol).dump(content)
    return stream.getvalue()


def write(folder: Path, program: bytes, data: bytes = bytes(16), order: bytes = b"little", compress: int = 0) -> Path:
    """Writes a file with one storage, of four numbers in fp32."""
    with zipfile.ZipFile(folder / NAME, "w", compress) as archive:
        archive.writestr("archive/data.pkl", program)
        archive.writestr("archive/byteorder", order)
        archive.writestr("archive/data/0", data)
    return folder / NAME


def write_old(folder: Path, program: bytes, size: int = 4, *, little_endian: bool = True) -> Path:
    head = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": little_endian}]
    content = b"".join(map(pickle.dumps, head)) + program + pickle.dumps(["0"])
    (folder / NAME).write_bytes(content + size.to_bytes(8, "little", signed=True) + bytes(16))
    return folder / NAME


def tensor(offset: object, shape: object, strides: object, storage: object = Stored(), *more: object) -> Calls:
    return Calls(_rebuild_tensor_v2, (storage, offset, shape, strides, False, OrderedDict(), *more))


def weight(*arguments: Any) -> bytes:
    return pickled({"weight": tensor(*arguments)})


def refused(file: Path) -> str:
    with pytest.raises(DataError) as caught:
        TorchWeights([file])
    assert "\n" not in str(caught.value)
    begin = f"{file}: cannot read the weights: "
    assert str(caught.value).startswith(begin)
    return str(caught.value).removeprefix(begin)


@pytest.mark.parametrize("made", [write, write_old])
def test_a_file_as_these_tests_write_it(made: Callable[..., Path], tmp_path: Path) -> None:
    """Else it would be refused for other reasons than those that are meant."""
    parameter = Calls(_rebuild_parameter, (tensor(0, (2, 2), (2, 1)), True, OrderedDict()))
    weights = TorchWeights([made(tmp_path, pickled({"weight": parameter}))])
    assert weights.read("weight").tolist() == [[0, 0], [0, 0]]


REACHES = "reaches beyond its 4 numbers"
OTHERWISE = "describes a tensor in a way that is not known"
HOSTILE: dict[str, tuple[bytes, str]] = {
    "a shell": (pickled({"weight": Calls(__import__("os").system, ("true",))}), "it names posix.system, which no"),
    "eval": (pickled({"weight": Calls(eval, ("1",))}), "it names __builtin__.eval, which no tensor needs"),
    "eval, newer": (pickled({"weight": Calls(eval, ("1",))}, 4), "it names builtins.eval, which no tensor needs"),
    "getattr": (pickled(Calls(getattr, ("", "join"))), "it names __builtin__.getattr, which no tensor needs"),
    "an import of old": (b"(S'true'\nios\nsystem\n.", "it names os.system, which no tensor needs"),
    "a path to an attribute": (b"\x80\x04\x8c\x05torch\x8c\x15FloatStorage.__init__\x93.", "torch.FloatStorage.__init"),
    "a class of ours": (pickled({"weight": Path("/")}), "which no tensor needs"),
    "a known name that is called": (b"ctorch\nFloatStorage\n)R.", "'str' object is not callable"),
    "a known function that is changed": (b"ctorch._utils\n_rebuild_tensor_v2\n}b.", "it sets what no tensor has"),
    "a known name that is made": (b"\x80\x02ccollections\nOrderedDict\n)\x81.", "NEWOBJ"),
    "a tensor that is changed": (pickled(Calls(_rebuild_tensor_v2, tensor(0, (4,), (1,))[1], {"a": 1})), "__dict__"),
    "no names": (pickled([tensor(0, (4,), (1,))]), "it holds more than tensors by name"),
    "more than tensors": (pickled({"weight": tensor(0, (4,), (1,)), "steps": 3}), "it holds more than tensors"),
    "a storage for a tensor": (pickled({"weight": Stored()}), "it holds more than tensors by name"),
    "a tensor for a storage": (weight(0, (4,), (1,), tensor(0, (4,), (1,))), OTHERWISE),
    "too large": (weight(0, (5,), (1,)), REACHES),
    "too wide": (weight(0, (2, 2), (3, 1)), REACHES),
    "too far": (weight(4, (1,), (1,)), REACHES),
    "far too large": (weight(0, (2**62, 2**62), (2**62, 1)), REACHES),
    "each number again and again": (weight(0, (2**40,), (0,)), REACHES),
    "before the begin": (weight(-1, (2,), (1,)), OTHERWISE),
    "backwards": (weight(3, (4,), (-1,)), OTHERWISE),
    "smaller than nothing": (weight(0, (-1, -4), (1, 1)), OTHERWISE),
    "no number": (weight(0, (2.0,), (1,)), OTHERWISE),
    "a truth": (weight(True, (2,), (1,)), OTHERWISE),
    "no tuple": (weight(0, [4], [1]), OTHERWISE),
    "fewer strides": (weight(0, (2, 2), (1,)), "zip() argument 2 is shorter"),
    "dimensions without end": (weight(0, (1,) * 99, (1,) * 99), "dimension"),
    "its negative": (weight(0, (4,), (1,), Stored(), {"neg": True}), OTHERWISE),
    "more numbers than there are": (weight(0, (5,), (1,), Stored(5)), "its storage 0 has"),
    "fewer than none": (weight(0, (4,), (1,), Stored(-1)), "describes a storage in a way that is not known"),
    "another type": (
        weight(0, (4,), (1,), Stored(4, torch.DoubleStorage)),
        "its storage 0 has 16 bytes, not 4 numbers of float64",
    ),
    "no type": (weight(0, (4,), (1,), Stored(4, "Storage")), "describes a storage in a way that is not known"),
    "no storage": (weight(0, (4,), (1,), Stored(4, torch.FloatStorage, "0", "module")), "describes a storage"),
    "a path": (weight(0, (4,), (1,), Stored(key="../byteorder")), "data/../byteorder"),
    "a memory without end": (b"\x80\x02}r\xff\xff\xff\x7f.", "it keeps more objects than it has"),
    "a text without end": (b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7f.", ""),
    "no end": (b"\x80\x02}", ""),
    "nothing": (b"", ""),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("made", [write, write_old])
def test_harm_is_refused_in_one_line(case: str, made: Callable[..., Path], tmp_path: Path) -> None:
    program, said = HOSTILE[case]
    if made is write_old and case == "another type":
        said = "buffer is smaller"
    if made is write_old and case == "a path":
        said = "it has other storages than its tensors name"
    assert said in refused(made(tmp_path, program))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"order": b"big"}, "its numbers are big-endian"),
        ({"data": bytes(15)}, "its storage 0 has 15 bytes, not 4 numbers of float32"),
        ({"compress": zipfile.ZIP_DEFLATED}, "its byteorder is compressed or damaged"),
    ],
)
def test_archives_that_cannot_be_read(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert said in refused(write(tmp_path, weight(0, (4,), (1,)), **changes))


def test_archives_of_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / NAME, "w") as archive:
        archive.writestr("archive/constants.pkl", b"")
    assert refused(tmp_path / NAME) == "it has no data.pkl"


def test_old_files_that_cannot_be_read(tmp_path: Path) -> None:
    program = weight(0, (4,), (1,))
    assert refused(write_old(tmp_path, program, little_endian=False)) == "its numbers are big-endian"
    assert refused(write_old(tmp_path, program, size=-1)) == "its storage 0 has -1 numbers, not 4"
    (tmp_path / NAME).write_bytes(pickle.dumps(7))
    assert refused(tmp_path / NAME) == "it is no file of torch"
    (tmp_path / NAME).write_bytes(b"")
    assert refused(tmp_path / NAME) == "cannot mmap an empty file"


@both_formats
@given(data=st.data())
def test_damaged_files_are_refused_or_read(as_zip: bool, data: st.DataObject) -> None:
    stream = io.BytesIO()
    table = torch.arange(12.0).reshape(3, 4)
    torch.save({"a": table.T, "b": table[1:]}, stream, _use_new_zipfile_serialization=as_zip)
    content = bytearray(stream.getvalue())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    with TemporaryDirectory() as folder:
        Path(folder, NAME).write_bytes(content)
        try:
            weights = TorchWeights([Path(folder, NAME)])
        except DataError:
            return
        read: list[Array] = [weights.read(name).copy() for name in weights.names]
        assert sum(array.size for array in read) <= 2 * len(content)
