"""Graphs of the default model, opened for one thread a run; and what cannot be opened."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from dragoman.bundle import DECODER, ENCODER, SOURCE, SOURCE_LENGTHS, SOURCE_SIZE, WEIGHTS, Bundle
from dragoman.errors import BundleError
from service.engine.graphs import open_graphs
from service.runtime.sessions import open_graph, open_session

BUNDLE = Path(__file__).parents[4] / "models" / "en-de" / "bundle"
MAPS = Path("/proc/self/maps")
SOURCES = {SOURCE: np.array([[5, 6, 2]]), SOURCE_LENGTHS: np.int32([3]), SOURCE_SIZE: np.array(3, np.int32)}


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.open(BUNDLE)


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_a_graph_runs_on_one_thread_of_the_cpu(bundle: Bundle, name: str) -> None:
    session = open_graph(bundle, name)
    options = session.get_session_options()
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


def test_sessions_read_one_copy_of_the_embeddings(bundle: Bundle) -> None:
    """The default model has one for both sides; each session would make a copy of its own."""
    graphs = open_graphs(bundle, "cpu")
    encoder, decoder, again = graphs.encoder.session, graphs.decoder.session, open_graph(bundle, ENCODER)
    shape = [bundle.manifest.vocabulary_size, bundle.manifest.d_model]
    places = {
        table.data_ptr()
        for session in (encoder, decoder, again)
        for table in session.kept.values()
        if table.shape() == shape
    }
    assert len(places) == 1


@pytest.mark.torch
@pytest.mark.skipif(not MAPS.exists(), reason="what is mapped is only known on Linux")
@pytest.mark.parametrize("name", [ENCODER, DECODER])
@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_an_open_session_maps_no_file(request: pytest.FixtureRequest, precision: str, name: str) -> None:
    """Or a file that is made shorter would end the process."""
    model = request.getfixturevalue(precision).bundle
    session = open_graph(model, name)
    assert str(model.path / WEIGHTS) not in MAPS.read_text()
    assert session.get_inputs()


def test_an_open_session_needs_no_file(bundle: Bundle, tmp_path: Path) -> None:
    """Nor does it matter what becomes of one."""
    folder = shutil.copytree(bundle.path, tmp_path / "bundle")
    encoder = open_graph(Bundle.open(folder), ENCODER)
    [expected] = encoder.run(None, SOURCES)
    (folder / WEIGHTS).write_bytes(b"")
    np.testing.assert_array_equal(encoder.run(None, SOURCES)[0], expected)


def test_weights_may_be_a_link_to_another_folder(bundle: Bundle, tmp_path: Path) -> None:
    folder = shutil.copytree(bundle.path, tmp_path / "bundle")
    (folder / WEIGHTS).rename(tmp_path / "a blob")
    (folder / WEIGHTS).symlink_to(tmp_path / "a blob")
    linked, plain = (open_graph(Bundle.open(path), ENCODER) for path in (folder, bundle.path))
    np.testing.assert_array_equal(linked.run(None, SOURCES)[0], plain.run(None, SOURCES)[0])


def test_weights_that_are_replaced_while_they_are_loaded_are_refused(bundle: Bundle, tmp_path: Path) -> None:
    folder = shutil.copytree(bundle.path, tmp_path / "bundle")
    opened = Bundle.open(folder)
    (tmp_path / "other").write_bytes(b"other")

    def replace_while_mapped() -> None:
        with opened.mapped(WEIGHTS):
            (tmp_path / "other").replace(folder / WEIGHTS)

    with pytest.raises(BundleError, match=r"weights\.bin: has changed while it was loaded"):
        replace_while_mapped()


def test_weights_that_changed_since_they_were_hashed_are_not_loaded(bundle: Bundle, tmp_path: Path) -> None:
    folder = shutil.copytree(bundle.path, tmp_path / "bundle")
    opened = Bundle.open(folder)
    with (folder / WEIGHTS).open("r+b") as file:
        file.write(b"other")
    with pytest.raises(BundleError, match=r"weights\.bin: sha256 is .*, the manifest says"):
        open_graph(opened, DECODER)


def test_what_is_no_graph_is_named_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BundleError) as refused:
        open_session(b"no graph", tmp_path / "decoder.onnx")
    assert str(refused.value).startswith(f"{tmp_path / 'decoder.onnx'}: ")
    assert "\n" not in str(refused.value)
