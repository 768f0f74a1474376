"""The CUDA libraries: loaded before the first session on a GPU; a missing one is named."""

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
# onnxruntime loads it only when an operator needs it.
_CUDNN: Final = "libcudnn.so.9"
_ERRORS: Final = 3
_INSTALL: Final = "install the extra gpu in place of cpu"


@cache
def preload() -> None:
    """Load the libraries that the extra `gpu` installs as Python packages; system libraries are found without this."""
    # This is the default logger, beside that of a session; at each start it warns of intended properties of a graph.
    onnxruntime.set_default_logger_severity(_ERRORS)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints missing libraries; `missing` reports them in one line
        onnxruntime.preload_dlls()


def missing() -> str | None:
    """Say in one line why no session can run on a GPU; None if no cause is known."""
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
    """Name the library that cannot be loaded: the given one, or one that it depends on; None if all are found."""
    try:
        ctypes.CDLL(library)
    except OSError as error:
        # "libcublasLt.so.13: cannot open shared object file: No such file or directory". Any other error of the
        # provider's library means only that onnxruntime, which it calls back, has not loaded it.
        name, _, why = str(error).partition(": ")
        return name if "cannot open shared object file" in why else None
    return None
