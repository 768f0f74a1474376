"""How onnxruntime opens a graph on a device."""

import threading
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import onnxruntime

from dragoman.bundle import DECODER, ENCODER, WEIGHTS, Bundle
from dragoman.errors import BundleError
from service.runtime import cuda
from service.runtime.onnx_file import Graph
from service.runtime.saturation import check_products
from service.runtime.weights import Weights, unpacked

PROVIDERS = {"cpu": ["CPUExecutionProvider"], "cuda": ["CUDAExecutionProvider", "CPUExecutionProvider"]}
# One thread at a time has to do with a GPU: while onnxruntime records a CUDA graph, no other thread of the process may
# reserve, copy or free memory there (cudaStreamCaptureModeGlobal), and a GPU gains nothing by two at a time.
DEVICE_LOCK: Final = threading.RLock()
_NO_WEIGHTS: Final = Weights()
_FOLDER: Final = "session.model_external_initializers_file_folder_path"

# By default an arena doubles each time that it has to grow.
_CUDA_OPTIONS: Final = {"arena_extend_strategy": "kSameAsRequested"}
# Kernels of attention (`AttentionBackend` of onnxruntime): without a causal mask, FLASH attends the padding of a batch,
# and cuDNN leaves the rows of the padding unwritten; MATH does neither, on every GPU. A decoder's rows have no padding.
_FLASH: Final = "1"
_MATH: Final = "16"
_CUDA_OPTIONS_OF: Final[Mapping[str, Mapping[str, str]]] = {
    ENCODER: {"sdpa_kernel": _MATH},
    # Each run whose options have a new `gpu_graph_id` is recorded, and repeated from then on. onnxruntime refuses a
    # graph of which a part would have to run, or to be copied, elsewhere.
    DECODER: {"sdpa_kernel": _FLASH, "enable_cuda_graph": "1"},
}


def open_graph(
    bundle: Bundle,
    name: str,
    device: str,
    *,
    run_threads: int = 1,
    packed: bool = True,
    profile: Path | None = None,
    placed: Path | None = None,
) -> onnxruntime.InferenceSession:
    """Open a graph of a bundle.

    Args:
        bundle: whose hashes were checked.
        name: of the file, such as `ENCODER` or `DECODER` of `dragoman.bundle`.
        device: cpu or cuda.
        run_threads: as for `open_session`.
        packed: as for `open_session`.
        profile: as for `open_session`.
        placed: as for `open_session`.

    Raises:
        BundleError: as `open_session`, or the file has changed.
    """
    with bundle.mapped(WEIGHTS) as content:
        return open_session(
            *bundle.graph(name),
            device,
            weights=Weights.of(content, bundle.manifest.files.get(WEIGHTS, ""), bundle.path),
            run_threads=run_threads,
            packed=packed,
            profile=profile,
            placed=placed,
            cuda_options=_CUDA_OPTIONS_OF.get(name, {}),
        )


def open_session(
    content: bytes,
    file: Path,
    device: str,
    *,
    weights: Weights = _NO_WEIGHTS,
    run_threads: int = 1,
    packed: bool = True,
    profile: Path | None = None,
    placed: Path | None = None,
    cuda_options: Mapping[str, str] | None = None,
) -> onnxruntime.InferenceSession:
    """Open a graph for use by several threads, each running it by itself.

    Args:
        content: of an ONNX file.
        file: its name, for messages.
        device: cpu or cuda.
        weights: that lie in a file of their own.
        run_threads: cores that one run uses, of a CPU; what comes out is the same, bit for bit.
        packed: bring the weights into the order in which a processor reads them fastest; else they stay mapped, and
            the file may not change. Of a CPU.
        profile: how the name of the file begins that onnxruntime writes the time of every operator to.
        placed: file that onnxruntime writes the graph to as it runs it, each operator with its device.
        cuda_options: of the CUDA provider.

    Raises:
        BundleError: the graph cannot be loaded, its products may saturate, or the device is not there.
    """
    graph = Graph(content, file, weights.content)
    check_products(graph, file)
    if device == "cuda" and (reason := cuda.missing()):
        raise BundleError(f"device {device}: {reason}")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = run_threads
    # A thread that waits for work would take the core of an engine thread.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    if placed is not None:
        options.optimized_model_filepath = str(placed)
    # A GPU's operators read its own memory.
    kept = unpacked(graph, weights) if device == "cpu" and packed else {}
    if not packed:
        options.add_session_config_entry("session.disable_prepacking", "1")
    if (kept or not packed) and weights.folder is not None:  # else it would copy all of them before it packs them
        options.add_session_config_entry(_FOLDER, str(weights.folder))
    else:
        options.add_external_initializers_from_files_in_memory([WEIGHTS], [weights.content], [len(weights.content)])
    for name, constant in kept.items():
        options.add_initializer(name, constant)
    providers: list[object] = list(PROVIDERS[device])
    if device == "cuda":
        providers[0] = (PROVIDERS[device][0], {**_CUDA_OPTIONS, **(cuda_options or {})})
    try:
        with DEVICE_LOCK if device == "cuda" else nullcontext():
            # Add and LayerNormalization apart take a third of the time of the fused operator.
            session = onnxruntime.InferenceSession(
                content, options, providers=providers, disabled_optimizers=["SkipLayerNormFusion"]
            )
    except Exception as error:  # onnxruntime's exceptions share no base class of its own
        raise BundleError(f"{file}: {' '.join(str(error).split())}") from error
    # onnxruntime 1.31 keeps the file's bytes beside the session, in case that other providers are to be tried.
    session._model_bytes = None
    session.kept = kept
    # onnxruntime falls back to the CPU in silence.
    if session.get_providers()[0] != PROVIDERS[device][0]:
        raise BundleError(f"device {device}: {PROVIDERS[device][0]} failed to start")
    return session
