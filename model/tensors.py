"""Files of tensors in the format safetensors, whose library has errors and file modes of its own."""

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from dragoman.errors import DataError


def write_tensors(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Write tensors into a file that whoever may read the other files of its folder may read.

    Raises:
        DataError: it cannot be written, as on a full disk.
        OSError: it cannot be made.
    """
    file.touch()
    mode = file.stat().st_mode
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, file)
    except SafetensorError as error:
        raise DataError(f"{file}: cannot write: {error}") from error
    file.chmod(mode)  # the library renames a file that only its owner may read


def read_tensors(file: Path) -> dict[str, Tensor]:
    """Read all tensors of a file.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{file}: cannot read: {error}") from error
