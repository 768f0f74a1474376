"""The most that one thread of this machine does: one large product in 8 bits, one in fp32, one large copy.

And what the profiler itself takes, which else would be counted as work of the operators.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from bench.roofline.costs import Peak
from service.runtime.saturation import LARGEST_SUM
from service.runtime.sessions import open_session

# Large enough that the code around the innermost loop costs nothing, small enough for a few milliseconds.
ROWS, INNER, COLUMNS = 512, 2048, 2048
COPY_BYTES = 128 * 2**20
REPEATS = 15
# Operators that do nothing to speak of, and runs of them.
IDLE_OPERATORS, IDLE_INPUTS, IDLE_RUNS = 64, 7, 200
# The profiler gives whole microseconds, rounded down.
ROUNDED_OFF_US = 0.5
# Those of a bundle; the onnx package may by itself write a format that the runtime does not read yet.
_IR_VERSION, _OPSET = 10, 20


class ProfilerCost(NamedTuple):
    """What the profiler adds to the time of an operator: it writes down every input and result before it looks up."""

    base_us: float
    per_array_us: float

    def us(self, arrays: int) -> float:
        """Return the microseconds for an operator of a number of inputs and results."""
        return self.base_us + arrays * self.per_array_us


def measure_peaks() -> dict[Peak, float]:
    """Measure the peaks, on one thread.

    Returns:
        Multiply-adds a second of the products; bytes a second, read and written, of the copy.
    """
    multiply_adds = float(ROWS * INNER * COLUMNS)
    return {
        "int8_product": multiply_adds / _product_s(_int8_product(), np.zeros((ROWS, INNER), np.uint8)),
        "fp32_product": multiply_adds / _product_s(_fp32_product(), np.zeros((ROWS, INNER), np.float32)),
        "copy": 2 * COPY_BYTES / _copy_s(),
    }


def measure_profiler() -> ProfilerCost:
    """Measure what the profiler adds to the time of an operator that does nothing, with few and many inputs."""
    few, many = _idle_us(1), _idle_us(IDLE_INPUTS)
    per_array_us = max((many - few) / (IDLE_INPUTS - 1), 0.0)
    return ProfilerCost(max(few - 2 * per_array_us, 0.0), per_array_us)


def _idle_us(inputs: int) -> float:
    """Measure, in microseconds, what the profiler gives for an idle operator, less what that takes without it."""
    model = idle_graph(IDLE_OPERATORS, inputs)
    feeds = {"value_0": np.ones((1, 1, 1), np.float32)}
    with tempfile.TemporaryDirectory() as folder:
        content, file = model.SerializeToString(), Path("idle.onnx")
        plain, profiled = (open_session(content, file, "cpu", profile=to) for to in (None, Path(folder) / "idle"))
        walls_s = [_timed_s(lambda: plain.run(None, feeds)) for _ in range(IDLE_RUNS)]
        for _ in range(IDLE_RUNS):
            profiled.run(None, feeds)
        events = json.loads(Path(profiled.end_profiling()).read_text())
    seen_us = [event["dur"] + ROUNDED_OFF_US for event in events if event["cat"] == "Node"]
    # The run as a whole takes time too; spread over all operators it is next to nothing.
    return statistics.fmean(seen_us) - statistics.median(walls_s) * 1e6 / IDLE_OPERATORS


def idle_graph(operators: int, inputs: int) -> onnx.ModelProto:
    """Make a chain of operators that pass on what they get, from `value_0`, fp32 [any size, 1, 1]."""
    nodes = [helper.make_node("Max", [f"value_{index}"] * inputs, [f"value_{index + 1}"]) for index in range(operators)]
    shape: list[int | str] = ["size", 1, 1]
    return _model(nodes, ("value_0", TensorProto.FLOAT, shape), (f"value_{operators}", shape), {})


def _int8_product() -> onnx.ModelProto:
    """Make a graph of the operator of an int8 bundle."""
    random = np.random.default_rng(0)
    largest = LARGEST_SUM // 2
    weight = random.integers(-largest, largest, (INNER, COLUMNS), dtype=np.int8, endpoint=True)
    constants: dict[str, NDArray[np.generic]] = {
        "weight": weight,
        "input_scale": np.array(0.01, np.float32),
        "weight_scale": np.full(COLUMNS, 0.01, np.float32),
        "zero_point": np.array(128, np.uint8),
    }
    inputs = ["input", *constants]
    node = helper.make_node("MatMulIntegerToFloat", inputs, ["output"], domain="com.microsoft")
    return _model([node], ("input", TensorProto.UINT8, [ROWS, INNER]), ("output", [ROWS, COLUMNS]), constants)


def _fp32_product() -> onnx.ModelProto:
    weight = np.random.default_rng(0).standard_normal((INNER, COLUMNS), np.float32)
    node = helper.make_node("MatMul", ["input", "weight"], ["output"])
    return _model([node], ("input", TensorProto.FLOAT, [ROWS, INNER]), ("output", [ROWS, COLUMNS]), {"weight": weight})


def _model(
    nodes: list[onnx.NodeProto],
    source: tuple[str, int, Sequence[int | str]],
    target: tuple[str, Sequence[int | str]],
    constants: dict[str, NDArray[np.generic]],
) -> onnx.ModelProto:
    """Make a graph from one array, given as name, type and shape, to one of fp32."""
    graph = helper.make_graph(
        nodes,
        "measured",
        [helper.make_tensor_value_info(*source)],
        [helper.make_tensor_value_info(target[0], TensorProto.FLOAT, target[1])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)


def _product_s(model: onnx.ModelProto, rows: NDArray[np.generic]) -> float:
    session = open_session(model.SerializeToString(), Path("product.onnx"), "cpu")
    output = np.empty((ROWS, COLUMNS), np.float32)
    binding = session.io_binding()
    binding.bind_input("input", "cpu", 0, rows.dtype, rows.shape, rows.ctypes.data)
    binding.bind_output("output", "cpu", 0, output.dtype, output.shape, output.ctypes.data)
    return _best_s(lambda: session.run_with_iobinding(binding))


def _copy_s() -> float:
    source = np.ones(COPY_BYTES, np.uint8)
    target = np.empty_like(source)
    return _best_s(lambda: np.copyto(target, source))


def _best_s(run: Callable[[], object]) -> float:
    """Return the seconds of the fastest of several runs: other work of the machine only adds to them."""
    return min(_timed_s(run) for _ in range(REPEATS))


def _timed_s(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
