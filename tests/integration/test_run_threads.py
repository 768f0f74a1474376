"""A run on several cores gives the bits of a run on one."""

import random
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from dragoman.bundle import Bundle
from plugins.offline.engine import OfflineEngine
from service.decode import Decode
from service.options import Decoding
from service.runtime.sessions import open_session
from service.settings import DEFAULT_MODELS


def _decoded(bundle: Bundle, run_threads: int) -> list[tuple[list[int], float, object]]:
    chance = random.Random(5)
    pieces = bundle.tokenizer().vocabulary_sizes[0]
    decodes = [
        Decode(
            [*chance.choices(range(4, pieces), k=length), bundle.manifest.eos_id],
            12,
            decoding=Decoding(beam_size=beam_size, wants_log_probability=True),
        )
        for length in (1, 2, 7, 19, 40, 41)
        for beam_size in (1, 1, 4)
    ]
    engine = OfflineEngine(bundle, threads=2, run_threads=run_threads)
    engine.decode(decodes)
    engine.close()
    return [(decode.target_ids, decode.log_probability, decode.hypotheses) for decode in decodes]


@pytest.mark.parametrize("run_threads", [2, 3])
def test_the_default_model_gives_the_same_scores_bit_for_bit(run_threads: int) -> None:
    bundle = Bundle.open(DEFAULT_MODELS / "en-de" / "bundle")  # large enough for its products to be divided
    assert _decoded(bundle, run_threads) == _decoded(bundle, 1)


@pytest.mark.parametrize("rows", [1, 5, 64])
def test_a_product_of_floats_is_the_same_bit_for_bit(rows: int) -> None:
    numbers = np.random.default_rng(rows)
    weights = numpy_helper.from_array(numbers.standard_normal((512, 4096)).astype(np.float32), "weights")
    floats = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", width])
        for name, width in (("x", 512), ("y", 4096))
    ]
    node = helper.make_node("MatMul", ["x", "weights"], ["y"])
    graph = helper.make_graph([node], "product", floats[:1], floats[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    x = numbers.standard_normal((rows, 512)).astype(np.float32)
    one, three = (
        open_session(model, Path("product.onnx"), run_threads=count).run(None, {"x": x})[0] for count in (1, 3)
    )
    assert np.array_equal(one, three)
