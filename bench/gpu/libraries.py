"""What `bench.gpu` finds on the machine: the GPU, its driver, CUDA's libraries, and the packages that parts need."""

import ctypes
import subprocess
from collections.abc import Callable
from typing import Final

import onnxruntime

from bench.gpu.setup import Figures, Task
from bench.machine import installed
from service.runtime import cuda

_PACKAGES: Final = (
    "onnxruntime-gpu",
    "onnxruntime",
    "torch",
    "onnx",
    "sacrebleu",
    "ctranslate2",
    "numpy",
)
_OF_THE_GPU: Final = ("name", "driver_version", "memory.total", "compute_cap")


def libraries(task: Task) -> Figures:
    """List what is installed, and, in `missing`, why nothing can run on the device, in one line; None where it can."""
    if task.setup.device == "cuda" and (reason := cuda.missing()):
        return {"missing": reason}
    figures: Figures = {
        "missing": None,
        "onnxruntime": onnxruntime.__version__,
        "providers": onnxruntime.get_available_providers(),
        "packages": [{"package": name, "version": installed(name) or "not installed"} for name in _PACKAGES],
    }
    if task.setup.device == "cuda":
        figures["gpu"] = _gpu()
        figures["libraries"] = [{"library": name, "version": _library(name, ask)} for name, ask in _LIBRARIES.items()]
    return figures


def nvidia_smi(*fields: str) -> dict[str, str]:
    """Ask the driver about the first GPU, by field.

    Raises:
        OSError: there is no nvidia-smi.
        subprocess.CalledProcessError: it found no GPU.
    """
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return dict(zip(fields, map(str.strip, said.split(",")), strict=True))


def _gpu() -> dict[str, str]:
    try:
        return nvidia_smi(*_OF_THE_GPU)
    except (OSError, subprocess.CalledProcessError) as error:
        return {"nvidia-smi": f"missing: {error}"}


def _library(name: str, ask: Callable[[ctypes.CDLL], str] | None) -> str:
    """Return the version of a shared library, or why it cannot be loaded."""
    try:
        library = ctypes.CDLL(name)
        return ask(library) if ask else "loaded"
    except (OSError, AttributeError) as error:
        return f"missing: {error}"


def _cuda(function: str) -> Callable[[ctypes.CDLL], str]:
    """Ask a function of CUDA that writes 1000 times the major and 10 times the minor version to an int."""

    def ask(library: ctypes.CDLL) -> str:
        number = ctypes.c_int()
        if code := getattr(library, function)(ctypes.byref(number)):
            return f"loaded, {function} fails with {code}"
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    return ask


def _cudnn(library: ctypes.CDLL) -> str:
    library.cudnnGetVersion.restype = ctypes.c_size_t
    number = library.cudnnGetVersion()
    return f"{number // 10_000}.{number % 10_000 // 100}.{number % 100}"


# What the CUDA provider of onnxruntime 1.31 loads, and how each tells its version.
_LIBRARIES: Final[dict[str, Callable[[ctypes.CDLL], str] | None]] = {
    "libcuda.so.1": _cuda("cuDriverGetVersion"),
    "libcudart.so.13": _cuda("cudaRuntimeGetVersion"),
    "libcublasLt.so.13": None,
    "libcublas.so.13": None,
    "libcurand.so.10": None,
    "libcudnn.so.9": _cudnn,
}
