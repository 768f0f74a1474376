"""What `bench.gpu` finds on the machine: the GPU, its driver, and the packages that parts need."""

import subprocess
from typing import Final

import onnxruntime

from bench.frame import Figures
from bench.gpu.task import Task
from bench.machine import installed
from plugins.gpu import cuda

_PACKAGES: Final = ("onnxruntime-gpu", "onnxruntime", "torch", "onnx", "sacrebleu", "ctranslate2", "numpy")
_OF_THE_GPU: Final = ("name", "driver_version", "memory.total", "compute_cap")


def libraries(task: Task) -> Figures:
    """List what is installed, and, in `missing`, why nothing can run on the device, in one line; None where it can."""
    on_gpu = task.setup.device == "cuda"
    if on_gpu and (reason := cuda.missing()):
        return {"missing": reason}
    return {
        "missing": None,
        "gpu": nvidia_smi(*_OF_THE_GPU) if on_gpu else None,
        "onnxruntime": onnxruntime.__version__,
        "providers": onnxruntime.get_available_providers(),
        "packages": [{"package": name, "version": installed(name) or "not installed"} for name in _PACKAGES],
    }


def nvidia_smi(*fields: str) -> dict[str, str]:
    """Ask the driver about the first GPU, by field; an error where there is none."""
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return dict(zip(fields, map(str.strip, said.split(",")), strict=True))
