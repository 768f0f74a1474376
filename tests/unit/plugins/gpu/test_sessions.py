"""Graphs of the default model, opened as on a GPU."""

from pathlib import Path

import onnxruntime
import pytest

from dragoman.bundle import ENCODER, Bundle
from dragoman.errors import BundleError
from plugins.gpu.sessions import open_graph

BUNDLE = Path(__file__).parents[4] / "models" / "en-de" / "bundle"


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.open(BUNDLE)


def test_the_graph_that_runs_is_written_where_it_is_asked_for(bundle: Bundle, tmp_path: Path) -> None:
    open_graph(bundle, ENCODER, "cpu", placed=tmp_path / "placed.onnx")
    assert (tmp_path / "placed.onnx").stat().st_size > 0


def test_a_device_that_is_not_there_is_named(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(BundleError, match="device cuda: this onnxruntime has no CUDAExecutionProvider"):
        open_graph(bundle, ENCODER, "cuda")
