"""What the default model decodes on this processor: python -m tests.arm64.decode prints it as JSON.

`ids` are the target ids of 200 sentences, from the engine that serves. `exact` says whether products of bytes, in the
sizes of the model, are those of whole numbers.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from dragoman.bundle import Bundle, target_limit
from plugins.offline.engine import OfflineEngine
from service.decode import Decode
from service.runtime.saturation import LARGEST_SUM

ROOT = Path(__file__).parents[2]
SENTENCES = 200
_ROWS = (1, 2, 3, 4, 5, 8, 33)  # kernels take several at once, and the rest in another way
_SHAPES = ((256, 256), (256, 1024), (1024, 256), (255, 33))


def target_ids() -> list[list[int]]:
    """Decode the first sentences of the pairs that tests have."""
    bundle = Bundle.open(ROOT / "models/en-de/bundle")
    tokenizer, manifest = bundle.tokenizer(), bundle.manifest
    lines = (ROOT / "tests/data/en-de.tsv").read_text(encoding="utf-8").splitlines()[:SENTENCES]
    sources = [[*tokenizer.encode(line.partition("\t")[0]), manifest.eos_id] for line in lines]
    decodes = [
        Decode(source, max_target_tokens=target_limit(len(source), manifest.max_target_tokens)) for source in sources
    ]
    engine = OfflineEngine(bundle, threads=1)
    engine.decode(decodes)
    engine.close()
    return [decode.target_ids for decode in decodes]


def products_are_exact() -> bool:
    """Compare products of bytes with those of whole numbers, at the bound that exported weights keep."""
    return all(_is_exact(rows, *shape) for shape in _SHAPES for rows in _ROWS)


def _is_exact(rows: int, inputs: int, outputs: int) -> bool:
    draws = np.random.default_rng([rows, inputs, outputs])
    left = draws.choice(np.array([0, 1, 127, 128, 254, 255], np.uint8), (rows, inputs))
    right = draws.choice(np.array([-LARGEST_SUM // 2, -1, 0, 1, LARGEST_SUM // 2], np.int8), (inputs, outputs))
    zero = np.array(128, np.uint8)
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["left", "right", "zero"], ["product"])],
        "product",
        [helper.make_tensor_value_info("left", TensorProto.UINT8, left.shape)],
        [helper.make_tensor_value_info("product", TensorProto.INT32, (rows, outputs))],
        [numpy_helper.from_array(right, "right"), numpy_helper.from_array(zero, "zero")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (product,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"left": left})
    return np.array_equal(product, (left.astype(np.int32) - int(zero)) @ right.astype(np.int32))


if __name__ == "__main__":
    json.dump({"ids": target_ids(), "exact": products_are_exact()}, sys.stdout)
