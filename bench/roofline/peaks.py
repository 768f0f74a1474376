"""The most that one thread of this machine does: one large product in 8 bits, one in fp32, one large copy."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from bench.roofline.costs import Peak
from service.runtime.saturation import LARGEST_SUM
from service.runtime.sessions import open_session

# Large enough that the code around the innermost loop costs nothing, small enough for a few milliseconds.
_ROWS, _INNER, _COLUMNS = 512, 2048, 2048
_COPY_BYTES: Final = 128 * 2**20
REPEATS = 15
# Those of a bundle; the onnx package may by itself write a format that the runtime does not read yet.
_IR_VERSION, _OPSET = 10, 20


def measure_peaks() -> dict[Peak, float]:
    """Measure the peaks, on one thread.

    Returns:
        Multiply-adds a second of the products; bytes a second, read and written, of the copy.
    """
    random, largest = np.random.default_rng(0), LARGEST_SUM // 2
    int8: dict[str, NDArray[np.generic]] = {
        "weight": random.integers(-largest, largest, (_INNER, _COLUMNS), dtype=np.int8, endpoint=True),
        "input_scale": np.array(0.01, np.float32),
        "weight_scale": np.full(_COLUMNS, 0.01, np.float32),
        "zero_point": np.array(128, np.uint8),
    }
    fp32 = {"weight": random.standard_normal((_INNER, _COLUMNS), np.float32)}
    source, multiply_adds = np.ones(_COPY_BYTES, np.uint8), float(_ROWS * _INNER * _COLUMNS)
    target = np.empty_like(source)
    return {
        "int8_product": multiply_adds / _product_s("MatMulIntegerToFloat", np.uint8, int8),
        "fp32_product": multiply_adds / _product_s("MatMul", np.float32, fp32),
        "copy": 2 * _COPY_BYTES / _best_s(lambda: np.copyto(target, source)),
    }


def _product_s(operator: str, kind: type[np.generic], constants: Mapping[str, NDArray[np.generic]]) -> float:
    """Measure a graph of one product of rows with constants."""
    rows, result = np.zeros((_ROWS, _INNER), kind), np.empty((_ROWS, _COLUMNS), np.float32)
    domain = "com.microsoft" if operator == "MatMulIntegerToFloat" else ""
    graph = helper.make_graph(
        [helper.make_node(operator, ["rows", *constants], ["result"], domain=domain)],
        "product",
        [helper.make_tensor_value_info("rows", helper.np_dtype_to_tensor_dtype(rows.dtype), rows.shape)],
        [helper.make_tensor_value_info("result", TensorProto.FLOAT, result.shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
    session = open_session(model.SerializeToString(), Path("product.onnx"))
    binding = session.io_binding()
    binding.bind_input("rows", "cpu", 0, rows.dtype, rows.shape, rows.ctypes.data)
    binding.bind_output("result", "cpu", 0, result.dtype, result.shape, result.ctypes.data)
    return _best_s(lambda: session.run_with_iobinding(binding))


def _best_s(run: Callable[[], object]) -> float:
    """Return the seconds of the fastest of several runs: other work of the machine only adds to them."""
    times_s = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times_s.append(time.perf_counter() - start)
    return min(times_s)
