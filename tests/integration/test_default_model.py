"""The committed checkpoint and the committed bundle belong together: exported again, it translates the same."""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from dragoman.bundle import DECODER, ENCODER, Bundle, sha256
from dragoman.language_marks import Languages
from dragoman.tokenizer import Tokenizer
from export.parity import compare, decode
from export.samples import of_corpus
from export.write import export_bundle
from model.checkpoint import load_checkpoint
from model.corpus import Corpus, read_corpus
from model.layout import PARITY, WEIGHTS
from plugins.offline.engine import OfflineEngine
from plugins.offline.texts import score_offline
from plugins.scoring.pair import Pair
from service.decode import Decode, FinishReason
from service.options import SCORING, Decoding, RequestOptions
from service.text.result import TextResult
from service.text.translator import Translator
from tests import plain_pytorch
from tests.default_model import BUNDLE, CHECKPOINT, fp32, target

PAIRS = Path(__file__).parents[1] / "data" / "en-de.tsv"
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def committed() -> Bundle:
    return Bundle.open(BUNDLE)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Of 125 pairs, from all parts of the file."""
    whole = read_corpus(PAIRS)
    return Corpus(whole.sources[::4], whole.targets[::4], [])


def test_bundle_is_of_the_checkpoint(committed: Bundle) -> None:
    manifest = committed.manifest
    assert manifest.provenance.checkpoint_sha256 == sha256(CHECKPOINT / WEIGHTS)
    assert (manifest.name, manifest.languages) == ("en-de", Languages.pair("en", "de"))
    assert manifest.precision == "int8"
    assert manifest.parameters <= 16_000_000
    assert sum(file.stat().st_size for file in CHECKPOINT.iterdir()) <= 32 * MEBIBYTE


def test_exported_again_it_translates_the_same(committed: Bundle, corpus: Corpus, tmp_path: Path) -> None:
    """On the pairs that the bundle was made with, since int8 is calibrated on them."""
    parity = export_bundle(CHECKPOINT, tmp_path / "bundle", target("int8"), read_corpus(CHECKPOINT / PARITY))
    assert parity.passed
    again = Bundle.open(tmp_path / "bundle")
    # Products of bytes are exact on every processor, and what is measured is rounded to steps: in general the bundle is
    # the same bit for bit. Where a processor's last digits push one of 2,000 values into the next step, three matrices
    # change at most (what writes a channel, asks for it and reads it), or one range: 18 of 125 sentences then differ.
    if again.manifest.files == committed.manifest.files:
        return
    samples = of_corpus(corpus, committed.manifest, Tokenizer.open(again.path))
    expected, actual = decode(committed, samples), decode(again, samples)
    # A copy: onnx reads no file with several links, and tests that run beside this one link to the committed bundle.
    shutil.copytree(committed.path, tmp_path / "committed")
    graphs = [(again.path / name, tmp_path / "committed" / name) for name in (ENCODER, DECODER)]
    assert all(operators(one) == operators(other) for one, other in graphs)
    assert sum(len(other_weights(one, other)) for one, other in graphs) <= 6
    assert sum(one != other for one, other in zip(expected, actual, strict=True)) <= 25


def other_weights(file: Path, other: Path) -> list[int]:
    """Which matrices of bytes differ, by their numbers."""
    expected, actual = (matrices(onnx.load(each)) for each in (file, other))
    assert len(expected) == len(actual)
    return [number for number, one in enumerate(expected) if not np.array_equal(one, actual[number])]


def matrices(model: onnx.ModelProto) -> list[np.ndarray]:
    """The constants of bytes, in the order in which the graph reads them."""
    constants = {one.name: one for one in model.graph.initializer if one.data_type == TensorProto.INT8}
    read = [name for node in model.graph.node for name in node.input if name in constants]
    return [numpy_helper.to_array(constants[name]) for name in read]


def operators(file: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(file).graph.node)


def test_fp32_is_plain_pytorch(corpus: Corpus) -> None:
    bundle = fp32()
    model, tokenizer = load_checkpoint(CHECKPOINT)
    samples = of_corpus(corpus, bundle.manifest, tokenizer)
    expected = plain_pytorch.decode(model, samples, bundle.manifest.max_target_tokens)
    parity = compare(samples, expected, tokenizer, bundle)
    assert (parity.sentences, parity.equal) == (125, 125)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_fp32_scores_its_own_translations_as_it_made_them(corpus: Corpus, beam_size: int) -> None:
    check_scores(fp32(), corpus, beam_size)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_int8_scores_its_own_translations_as_it_made_them(committed: Bundle, corpus: Corpus, beam_size: int) -> None:
    check_scores(committed, corpus, beam_size)


def check_scores(bundle: Bundle, corpus: Corpus, beam_size: int) -> None:
    """The score of a translation is what its decoding said, to the last bit, where its text has its tokens again."""
    tokenizer, engine = bundle.tokenizer(), OfflineEngine(bundle, threads=1, slots=32)
    translator = Translator(bundle.manifest, tokenizer)
    decoding = Decoding.of(beam_size=beam_size, log_probability=True)
    eos_id, longest = bundle.manifest.eos_id, bundle.manifest.max_target_tokens
    decodes = [Decode([*tokenizer.encode(text), eos_id], longest, decoding=decoding) for text in corpus.sources]
    engine.decode(decodes)
    pairs = [
        Pair(source, tokenizer.decode(made.target_ids)) for source, made in zip(corpus.sources, decodes, strict=True)
    ]
    same = 0
    scores = score_offline(translator, engine, pairs, RequestOptions(decoding=SCORING))
    for made, scored in zip(decodes, scores, strict=True):
        assert isinstance(scored, TextResult)
        ids = tokenizer.encode_target(tokenizer.decode(made.target_ids))
        if ids == made.target_ids and made.finish_reason is FinishReason.EOS:
            assert scored.log_probability == made.log_probability
            assert scored.mean_log_probability == made.log_probability / made.decoded_tokens
            same += 1
    # The others are written in pieces that the tokenizer would not choose for their text.
    assert same >= 0.85 * len(corpus)
