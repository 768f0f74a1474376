"""A small student that Marian trains here: Marian itself and Firefox's engine translate as this project does."""

from pathlib import Path

import pytest

pytest.importorskip("pymarian", reason="Marian itself, 600 MB from PyPI")
pytest.importorskip("fxtranslate", reason="Firefox's engine, from PyPI")

from model.corpus import read_corpus
from tests.hugging_face_files import PAIRS
from tests.peers import marian

UPDATES, SENTENCES = 80, 40


@pytest.mark.parametrize("apart", [False, True])
def test_one_model_four_programs(apart: bool, tmp_path: Path) -> None:
    corpus = read_corpus(PAIRS)
    pairs, texts = (corpus.sources, corpus.targets), corpus.sources[:SENTENCES]
    shape = marian.Shape(2, 2, width=32, ffn=64, apart=apart)
    trained = marian.train(shape, pairs, tmp_path / "trained", UPDATES, pieces=400)
    one, several = marian.compare_fp32(trained, texts, tmp_path / "out")
    assert one.widest_gap < 1e-3
    assert min(one.same, several.same) >= SENTENCES - 1
    found = marian.compare_bytes(trained, texts, marian.as_firefox(trained, pairs), tmp_path / "imported")
    assert found["NumPy of the bytes in fp32, imported in fp32"].same >= SENTENCES - 1
    # A rounding to bytes that falls on the other side changes more than one of fp32.
    assert max(found["Firefox, sums clipped"].same, found["Firefox, sums exact"].same) >= SENTENCES - 3
