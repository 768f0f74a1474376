"""How onnxruntime opens a graph on a GPU."""

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

# One thread at a time has to do with a GPU: while onnxruntime records a CUDA graph, no other thread of the process may
# reserve, copy or free memory there (cudaStreamCaptureModeGlobal), and a GPU gains nothing by two at a time.
DEVICE_LOCK: Final = threading.RLock()

# By default an arena doubles each time that it has to grow.
_OPTIONS: Final = {"arena_extend_strategy": "kSameAsRequested"}
# Kernels of attention (`AttentionBackend` of onnxruntime): without a causal mask, FLASH attends the padding of a batch,
# and cuDNN leaves the rows of the padding unwritten; MATH does neither, on every GPU. A decoder's rows have no padding.
_FLASH: Final = "1"
_MATH: Final = "16"
_OPTIONS_OF: Final[Mapping[str, Mapping[str, str]]] = {
    ENCODER: {"sdpa_kernel": _MATH},
    # Each run whose options have a new `gpu_graph_id` is recorded, and repeated from then on. onnxruntime refuses a
    # graph of which a part would have to run, or to be copied, elsewhere.
    DECODER: {"sdpa_kernel": _FLASH, "enable_cuda_graph": "1"},
}


def open_graph(bundle: Bundle, name: str, device: str, *, placed: Path | None = None) -> onnxruntime.InferenceSession:
    """Open a graph of a bundle.

    Args:
        bundle: whose hashes were checked.
        name: of the file, such as `ENCODER` or `DECODER` of `dragoman.bundle`.
        device: cpu or cuda.
        placed: as for `service.runtime.sessions.open_session`.

    Raises:
        BundleError: the graph cannot be loaded, or the device is not there.
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
        options: of the CUDA provider.
        content, file, weights, placed: as for `service.runtime.sessions.open_session`.

    Raises:
        BundleError: as there, or the device is not there.
    """
    if device == "cpu":
        return sessions.open_session(content, file, weights=weights, placed=placed)
    if reason := cuda.missing():
        raise BundleError(f"device {device}: {reason}")
    with DEVICE_LOCK:
        session = sessions.open_session(
            content, file, weights=weights, placed=placed, provider=(cuda.PROVIDER, {**_OPTIONS, **(options or {})})
        )
    # onnxruntime falls back to the CPU in silence.
    if session.get_providers()[0] != cuda.PROVIDER:
        raise BundleError(f"device {device}: {cuda.PROVIDER} failed to start")
    return session
