"""The graphs that work on a device's buffers, in every precision."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from dragoman.bundle import Precision, memory_names, present_name
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
def test_memories_are_laid_out_as_the_decoder_reads_them(
    config: TransformerConfig, tmp_path: Path, precision: Precision, source: int
) -> None:
    file = tmp_path / "place.onnx"
    write_place(config, precision, file)
    width, dtype = HEADS * HEAD_DIM, TYPES[precision]
    memory = (np.arange(3 * source * LAYERS * 2 * width) % 100).reshape(3, source, -1).astype(dtype)
    buffers = {name: np.full((5, HEADS, CAPACITY, HEAD_DIM), 7, dtype) for name in memory_names(LAYERS)}
    rows = {"source_rows": np.array([2, 0]), "slot_rows": np.array([1, 4]).reshape(2, 1, 1, 1)}
    padding = np.array([0, 0, 0, 0, CAPACITY - source, 0])
    placed = open_graph(file).run(None, {"memory": memory, "padding": padding, **rows, **buffers})
    for index, buffer in enumerate(placed):
        assert (buffer.dtype, buffer.shape) == (dtype, (5, HEADS, CAPACITY, HEAD_DIM))
        for row, slot in ((2, 1), (0, 4)):
            part = memory[row, :, index * width :][:, :width].reshape(source, HEADS, HEAD_DIM)
            np.testing.assert_array_equal(buffer[slot, :, :source], part.transpose(1, 0, 2))
            assert not buffer[slot, :, source:].any()
        assert (buffer[[0, 2, 3]] == 7).all()


def test_its_buffers_are_named_as_those_of_the_decoder(config: TransformerConfig, tmp_path: Path) -> None:
    write_place(config, "int8", tmp_path / "place.onnx")
    graph = onnx.load(tmp_path / "place.onnx").graph
    assert {value.name for value in graph.input} >= set(memory_names(LAYERS))
    assert [value.name for value in graph.output] == [present_name(name) for name in memory_names(LAYERS)]


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
