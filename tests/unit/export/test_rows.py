"""The graphs that work on a device's buffers, in every precision."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from dragoman.bundle import Precision
from export.rows import write_copy, write_place
from model.config import TransformerConfig

LAYERS, HEADS, HEAD_DIM, CAPACITY = 2, 3, 4, 7
TYPES: dict[Precision, type] = {"fp32": np.float32, "int8": np.int8, "fp16": np.float16}


@pytest.fixture
def config() -> TransformerConfig:
    return TransformerConfig(
        source_vocabulary_size=9,
        target_vocabulary_size=9,
        d_model=10,  # of which the heads' width does not follow
        heads=HEADS,
        attention_head_dim=HEAD_DIM,
        d_ff=8,
        encoder_layers=1,
        decoder_layers=LAYERS,
    )


def open_graph(file: Path) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("source", [1, 4, CAPACITY])
@pytest.mark.parametrize("precision", TYPES)
def test_a_memory_is_laid_out_as_the_decoder_reads_it(
    config: TransformerConfig, tmp_path: Path, precision: Precision, source: int
) -> None:
    file = tmp_path / "place.onnx"
    write_place(config, precision, file)
    width = HEADS * HEAD_DIM
    memory = np.arange(source * LAYERS * 2 * width).reshape(1, source, -1).astype(TYPES[precision])
    placed = open_graph(file).run(None, {"memory": memory, "padding": np.array([0, 0, 0, 0, CAPACITY - source, 0])})
    for index, buffer in enumerate(placed):
        assert (buffer.dtype, buffer.shape) == (TYPES[precision], (1, HEADS, CAPACITY, HEAD_DIM))
        part = memory[0, :, index * width :][:, :width].reshape(source, HEADS, HEAD_DIM)
        np.testing.assert_array_equal(buffer[0, :, :source], part.transpose(1, 0, 2))
        assert not buffer[0, :, source:].any()


def test_its_outputs_are_named_as_the_inputs_of_the_decoder(config: TransformerConfig, tmp_path: Path) -> None:
    write_place(config, "int8", tmp_path / "place.onnx")
    outputs = [output.name for output in onnx.load(tmp_path / "place.onnx").graph.output]
    assert outputs == ["memory_key_0", "memory_value_0", "memory_key_1", "memory_value_1"]


def test_a_copy_is_the_same_bytes(tmp_path: Path) -> None:
    write_copy(tmp_path / "copy.onnx")
    numbers = np.arange(-100, 100, dtype=np.int8)
    [copied] = open_graph(tmp_path / "copy.onnx").run(None, {"bytes": numbers})
    np.testing.assert_array_equal(copied, numbers)


def test_files_are_always_the_same(config: TransformerConfig, tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        write_place(config, "fp16", tmp_path / name / "place.onnx")
        write_copy(tmp_path / name / "copy.onnx")
    for file in ("place.onnx", "copy.onnx"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()
