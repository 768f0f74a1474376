"""How onnxruntime opens a graph."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import onnxruntime

from dragoman.bundle import WEIGHTS, Bundle
from dragoman.errors import BundleError
from service.runtime.onnx_file import Graph
from service.runtime.saturation import check_products
from service.runtime.weights import Weights, unpacked

NO_WEIGHTS: Final = Weights()
_CPU: Final = "CPUExecutionProvider"
_FOLDER: Final = "session.model_external_initializers_file_folder_path"


def open_graph(bundle: Bundle, name: str, *, run_threads: int = 1, packed: bool = True) -> onnxruntime.InferenceSession:
    """Open a graph of a bundle.

    Args:
        bundle: a bundle whose hashes were checked.
        name: name of the file, such as `ENCODER` or `DECODER` of `dragoman.bundle`.
        run_threads, packed: as for `open_session`.

    Raises:
        BundleError: as `open_session`, or the file has changed.
    """
    with bundle.mapped(WEIGHTS) as content:
        return open_session(
            *bundle.graph(name),
            weights=Weights.of(content, bundle.manifest.files.get(WEIGHTS, ""), bundle.path),
            run_threads=run_threads,
            packed=packed,
        )


def open_session(
    content: bytes,
    file: Path,
    *,
    weights: Weights = NO_WEIGHTS,
    run_threads: int = 1,
    packed: bool = True,
    placed: Path | None = None,
    provider: tuple[str, Mapping[str, str]] | None = None,
) -> onnxruntime.InferenceSession:
    """Open a graph for use by several threads, each of which runs it alone.

    Args:
        content: content of an ONNX file.
        file: its name, for messages.
        run_threads: cores that one run uses, on a CPU; the number changes no bit of the results.
        packed: copy the weights into the order in which a processor reads them fastest; else they stay mapped, and the
            file must not change. On a CPU.
        placed: file to which onnxruntime writes the graph as it runs it, each operator with its device.
        provider: execution provider of another device, with its options; None: the CPU runs all operators.

    Raises:
        BundleError: the graph cannot be loaded, or its products may saturate.
    """
    graph = Graph(content, file, weights.content)
    check_products(graph, file)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = run_threads
    # A thread that waits for work would take the core of an engine thread.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if placed is not None:
        options.optimized_model_filepath = str(placed)
    # Operators on a GPU read the memory of the GPU.
    kept = unpacked(graph, weights) if provider is None and packed else {}
    if not packed:
        options.add_session_config_entry("session.disable_prepacking", "1")
    if (kept or not packed) and weights.folder is not None:  # else they are all copied before they are packed
        options.add_session_config_entry(_FOLDER, str(weights.folder))
    else:
        options.add_external_initializers_from_files_in_memory([WEIGHTS], [weights.content], [len(weights.content)])
    for name, constant in kept.items():
        options.add_initializer(name, constant)
    providers = [_CPU] if provider is None else [provider, _CPU]
    try:
        # Add and LayerNormalization apart take a third of the time of the fused operator.
        session = onnxruntime.InferenceSession(
            content, options, providers=providers, disabled_optimizers=["SkipLayerNormFusion"]
        )
    except Exception as error:  # onnxruntime's exceptions share no base class of its own
        raise BundleError(f"{file}: {' '.join(str(error).split())}") from error
    # onnxruntime 1.31 keeps the file's bytes with the session, to try other providers later.
    session._model_bytes = None
    session.kept = kept
    return session
