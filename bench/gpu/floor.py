"""The floor under a decode step: the bytes that it must read, over the bandwidth that the device shows in a copy."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from dragoman.bundle import DECODER, Bundle, Manifest
from plugins.gpu.sessions import open_session
from service.runtime.slots import KEY_VALUE_TYPES

# Of a copy, in floats: large beside every cache, and on a GPU beside the time to launch it.
COPY_FLOATS: Final = {"cuda": 2**29, "cpu": 2**24}
_COPY_REPEATS: Final = 10
_IR_VERSION, _OPSET = 10, 20  # those of a bundle


def copy_bytes_per_s(device: str) -> float:
    """Measure the bytes a second, read and written, of one large operator that does next to nothing, on the device."""
    count = COPY_FLOATS[device]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [count]) for name in ("source", "target")]
    graph = helper.make_graph([helper.make_node("Neg", ["source"], ["target"])], "copy", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    session = open_session(model.SerializeToString(), Path("copy.onnx"), device)
    source, target = (onnxruntime.OrtValue.ortvalue_from_shape_and_type([count], np.float32, device, 0) for _ in ends)
    binding = session.io_binding()
    binding.bind_ortvalue_input("source", source)
    binding.bind_ortvalue_output("target", target)
    times_s = []
    for _ in range(_COPY_REPEATS):
        start = time.perf_counter()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        times_s.append(time.perf_counter() - start)
    return 2 * 4 * count / min(times_s)


class StepBytes(NamedTuple):
    """What a decode step must read."""

    weights: int
    row: float  # bytes of the valid keys and values of a row, its own ones and the source's, on average over steps

    def least_ms(self, rows: float, bytes_per_s: float) -> float:
        """Return the milliseconds of a step at a bandwidth: no step of that number of rows can be faster."""
        return (self.weights + rows * self.row) / bytes_per_s * 1e3


def step_bytes(bundle: Bundle, source_tokens: Sequence[int], target_tokens: Sequence[int]) -> StepBytes:
    """Count what the steps of these sentences read; all ends are counted, and a sentence has a step a target token."""
    positions = sum(
        target * (target + 1) / 2 + target * source for source, target in zip(source_tokens, target_tokens, strict=True)
    )
    return StepBytes(weight_bytes(bundle), positions / sum(target_tokens) * position_bytes(bundle.manifest))


def weight_bytes(bundle: Bundle) -> int:
    """Count the bytes of the decoder's weights that a step reads; of a table of embeddings it reads a few rows."""
    graph = onnx.load(bundle.path / DECODER, load_external_data=False).graph
    read = {name for node in graph.node for name in node.input[node.op_type == "Gather" :]}
    return sum(
        math.prod(weight.dims) * helper.tensor_dtype_to_np_dtype(weight.data_type).itemsize
        for weight in graph.initializer
        if weight.name in read
    )


def position_bytes(manifest: Manifest) -> int:
    """Count the bytes of the keys and values of one position in all layers."""
    item = np.dtype(KEY_VALUE_TYPES[manifest.precision]).itemsize
    return manifest.decoder_layers * 2 * manifest.attention_width * item
