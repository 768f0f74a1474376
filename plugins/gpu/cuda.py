"""The libraries of CUDA: loaded before the first session on a GPU, and which of them is missing."""

import contextlib
import ctypes
import io
from functools import cache
from pathlib import Path
from typing import Final

import onnxruntime

PROVIDER: Final = "CUDAExecutionProvider"
_PROVIDER_LIBRARY: Final = Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime_providers_cuda.so"
_DRIVER: Final = "libcuda.so.1"
# Loaded by onnxruntime only when an operator needs it.
_CUDNN: Final = "libcudnn.so.9"
_ERRORS: Final = 3
_INSTALL: Final = "install the extra gpu in place of cpu"


@cache
def preload() -> None:
    """Load the libraries that the extra `gpu` brings as packages of Python; those of the system are found without."""
    # Beside the log of a session it has one of its own, which warns at each start of what a graph does on purpose.
    onnxruntime.set_default_logger_severity(_ERRORS)
    with contextlib.redirect_stdout(io.StringIO()):  # what it does not find it prints; `missing` says it in a line
        onnxruntime.preload_dlls()


def missing() -> str | None:
    """Say in one line why no session can run on a GPU; None where nothing is known to be missing."""
    if PROVIDER not in onnxruntime.get_available_providers():
        return f"this onnxruntime has no {PROVIDER}: {_INSTALL}"
    preload()
    if library := _absent(_DRIVER):
        return f"{library} is missing: there is no NVIDIA driver here"
    for needed in (str(_PROVIDER_LIBRARY), _CUDNN):
        if library := _absent(needed):
            return f"{library} is missing, a library of CUDA or cuDNN: {_INSTALL}"
    if code := ctypes.CDLL(_DRIVER).cuInit(0):
        return f"the NVIDIA driver finds no GPU that it can use (cuInit gives {code})"
    return None


def _absent(library: str) -> str | None:
    """Name the library that cannot be loaded: the given one, or one that it needs; None where all are there."""
    try:
        ctypes.CDLL(library)
    except OSError as error:
        # "libcublasLt.so.13: cannot open shared object file: No such file or directory". What else can be wrong with
        # the provider's own library is that onnxruntime, which it calls back, has not loaded it.
        name, _, why = str(error).partition(": ")
        return name if "cannot open shared object file" in why else None
    return None
