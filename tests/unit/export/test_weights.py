"""The file of the weights: what lies in it, how often, and that a bundle's graphs are small beside it."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
import onnx
import pytest

from dragoman.bundle import DECODER, ENCODER, WEIGHTS, Bundle, Precision
from export.weights import Place, WeightsFile

FLOAT = np.dtype(np.float32)
NUMBERS = np.arange(257, dtype=np.float32)  # 1,028 bytes: the next constant begins behind them and 60 zeros


class Exported(Protocol):
    """Of the fixture `exported`."""

    bundle: Bundle


def test_equal_constants_lie_there_once_and_begin_as_processors_read(tmp_path: Path) -> None:
    with WeightsFile(tmp_path) as weights:
        assert weights.place(NUMBERS, FLOAT) == Place(0, 1028)
        assert weights.place(NUMBERS + 1, FLOAT) == Place(1088, 1028)
        assert weights.place(NUMBERS, FLOAT) == Place(0, 1028)
        assert weights.place(-NUMBERS, FLOAT) == Place(2176, 1028)
    content = (tmp_path / WEIGHTS).read_bytes()
    assert len(content) == 2176 + 1028
    assert content[1088:2116] == (NUMBERS + 1).tobytes()
    assert content[2176:] == (-NUMBERS).tobytes()
    assert not any(content[1028:1088])


def test_of_what_lies_there_nothing_is_left_at_the_end(tmp_path: Path) -> None:
    with WeightsFile(tmp_path) as weights:
        weights.place(NUMBERS, FLOAT)
        weights.place(NUMBERS, FLOAT)
        weights.flush()
        assert (tmp_path / WEIGHTS).read_bytes() == NUMBERS.tobytes()


@pytest.mark.parametrize("rows", [1, 2, 64])
def test_large_constants_are_converted_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr("export.weights._CHUNK_BYTES", 2 * 3 * rows)
    array = np.arange(17 * 3).reshape(3, 17).T / 8  # in Fortran's order, and of another type
    with WeightsFile(tmp_path) as weights:
        whole = weights.place(array.astype(np.float16), np.dtype(np.float16))
        assert weights.place(array, np.dtype(np.float16)) == whole == Place(0, 2 * 17 * 3)
        other = weights.place(array, FLOAT)
    content = (tmp_path / WEIGHTS).read_bytes()
    assert content[: whole.size] == array.astype(np.float16).tobytes()
    assert content[other.offset :] == array.astype(np.float32).tobytes()


@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
def test_the_embeddings_of_both_graphs_lie_in_one_place(
    exported: Callable[[Precision], Exported], precision: Precision
) -> None:
    bundle = exported(precision).bundle
    graphs = [onnx.load(file, load_external_data=False) for file in (bundle.path / ENCODER, bundle.path / DECODER)]
    places = []
    for graph in graphs:
        gathered = {node.input[0] for node in graph.graph.node if node.op_type == "Gather"}
        [rows] = [one for one in graph.graph.initializer if one.name in gathered and list(one.dims) == [400, 32]]
        places.append({entry.key: entry.value for entry in rows.external_data})
        assert all(len(one.raw_data) < 1024 for one in graph.graph.initializer)
    assert places[0] == places[1]
    assert places[0]["location"] == WEIGHTS
