"""Sessions of onnxruntime on a GPU."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import onnxruntime

from dragoman.bundle import DECODER, ENCODER, WEIGHTS, Bundle
from dragoman.errors import BundleError
from plugins.gpu import cuda
from service.runtime import sessions
from service.runtime.weights import Weights

# Only one thread at a time may use a GPU: while onnxruntime records a CUDA graph, no other thread of the process may
# reserve, copy or free GPU memory (cudaStreamCaptureModeGlobal), and two threads at a time would not be faster.
DEVICE_LOCK: Final = threading.RLock()

# By default, an arena doubles its size whenever it has to grow.
_OPTIONS: Final = {"arena_extend_strategy": "kSameAsRequested"}
# Attention kernels (`AttentionBackend` of onnxruntime): without a causal mask, FLASH attends to the padding of a batch,
# and cuDNN leaves padding rows unwritten; MATH has neither problem, on every GPU. Decoder rows have no padding.
_FLASH: Final = "1"
_MATH: Final = "16"
_OPTIONS_OF: Final[Mapping[str, Mapping[str, str]]] = {
    ENCODER: {"sdpa_kernel": _MATH},
    # Each run with a new `gpu_graph_id` is recorded, and repeated from then on. onnxruntime refuses a graph if a part
    # of it would run on, or be copied to, another device.
    DECODER: {"sdpa_kernel": _FLASH, "enable_cuda_graph": "1"},
}


def open_graph(bundle: Bundle, name: str, device: str, *, placed: Path | None = None) -> onnxruntime.InferenceSession:
    """Open a graph of a bundle.

    Args:
        bundle: a bundle with checked hashes.
        name: the name of the file, such as `ENCODER` or `DECODER` of `dragoman.bundle`.
        device: cpu or cuda.
        placed: as for `service.runtime.sessions.open_session`.

    Raises:
        BundleError: the graph cannot be loaded, or the device is missing.
    """
    with bundle.mapped(WEIGHTS) as content:
        weights = Weights.of(content, bundle.manifest.files.get(WEIGHTS, ""), bundle.path)
        return open_session(*bundle.graph(name), device, weights=weights, placed=placed, options=_OPTIONS_OF.get(name))


def open_session(
    content: bytes,
    file: Path,
    device: str,
    *,
    weights: Weights = sessions.NO_WEIGHTS,
    placed: Path | None = None,
    options: Mapping[str, str] | None = None,
) -> onnxruntime.InferenceSession:
    """Open a graph on a device.

    Args:
        device: cpu or cuda.
        options: options of the CUDA provider.
        content, file, weights, placed: as for `service.runtime.sessions.open_session`.

    Raises:
        BundleError: the graph cannot be loaded, or the device is missing.
    """
    if device == "cpu":
        return sessions.open_session(content, file, weights=weights, placed=placed)
    if reason := cuda.missing():
        raise BundleError(f"device {device}: {reason}")
    with DEVICE_LOCK:
        session = sessions.open_session(
            content, file, weights=weights, placed=placed, provider=(cuda.PROVIDER, {**_OPTIONS, **(options or {})})
        )
    # onnxruntime falls back to the CPU without an error.
    if session.get_providers()[0] != cuda.PROVIDER:
        raise BundleError(f"device {device}: {cuda.PROVIDER} failed to start")
    return session
