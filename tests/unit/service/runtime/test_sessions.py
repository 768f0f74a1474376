"""Graphs of the default model, opened for one thread a run; and what cannot be opened."""

from pathlib import Path

import onnxruntime
import pytest

from dragoman.bundle import DECODER, ENCODER, Bundle
from dragoman.errors import BundleError
from service.runtime.sessions import open_graph, open_session

BUNDLE = Path(__file__).parents[4] / "models" / "en-de" / "bundle"


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.open(BUNDLE)


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_a_graph_runs_on_one_thread_of_the_cpu(bundle: Bundle, name: str) -> None:
    session = open_graph(bundle, name, "cpu")
    options = session.get_session_options()
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


def test_what_is_no_graph_is_named_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BundleError) as refused:
        open_session(b"no graph", tmp_path / "decoder.onnx", "cpu")
    assert str(refused.value).startswith(f"{tmp_path / 'decoder.onnx'}: ")
    assert "\n" not in str(refused.value)


def test_the_graph_that_runs_is_written_where_it_is_asked_for(bundle: Bundle, tmp_path: Path) -> None:
    open_graph(bundle, ENCODER, "cpu", placed=tmp_path / "placed.onnx")
    assert (tmp_path / "placed.onnx").stat().st_size > 0


def test_a_device_that_is_not_there_is_named(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(BundleError, match="device cuda: this onnxruntime has no CUDAExecutionProvider"):
        open_graph(bundle, ENCODER, "cuda")
