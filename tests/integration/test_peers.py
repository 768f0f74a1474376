"""Other programs run the very weights of a checkpoint: in fp32 each decodes the tokens of plain PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from bench.server_process import running
from dragoman import Client
from dragoman.bundle import target_limit
from dragoman.tokenizer import Tokenizer
from export.samples import Sample
from model.checkpoint import load_checkpoint, save_checkpoint
from model.config import TransformerConfig
from model.corpus import Corpus, read_corpus
from model.decoding import greedy
from model.subwords import train_tokenizer
from model.transformer import Transformer
from tests import plain_pytorch

pytest.importorskip("ctranslate2", reason='needs the extra "peers"')

from bench.compare.models import real_sentences
from bench.peers import convert, ct2, ours, random_model
from bench.peers.checkpoint import Checkpoint
from bench.sentences import Sentences

REPOSITORY = Path(__file__).parents[2]
CHECKPOINT = REPOSITORY / "models" / "en-de" / "checkpoint"
BUNDLE = REPOSITORY / "models" / "en-de" / "bundle"
PAIRS = REPOSITORY / "tests" / "data" / "en-de.tsv"
ONE_THREAD = {"inter_threads": 1, "intra_threads": 1}
MAX_TARGET_TOKENS = 256

SMALL: dict[str, Any] = {
    "source_vocabulary_size": 400,
    "target_vocabulary_size": 400,
    "d_model": 32,
    "heads": 2,
    "d_ff": 48,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "max_positions": 64,
    "tie_output": False,  # else a random model repeats its last token for ever
}
# What of the configuration the converter has to translate, each with everything else as it is.
VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "post-norm": {"norm": "post"},
    "gelu": {"activation": "gelu"},
    "silu": {"activation": "silu"},
    "half-and-half positions": {"positions": "sinusoidal_halves"},
    "learned positions with an offset": {"positions": "learned", "position_offset": 2},
    "sinusoidal positions with an offset": {"position_offset": 3},
    "embedding norm": {"embedding_norm": True},
    "embedding not scaled": {"scale_embedding": False},
    "output bias": {"output_bias": True},
    "tied output": {"tie_output": True},
    "an embedding a side": {"share_embeddings": False},
    "another epsilon": {"norm_epsilon": 0.1},
}


def sentences_of(tokenizer: Tokenizer, texts: Sequence[str], eos_id: int) -> Sentences:
    sources = [[*tokenizer.encode(text), eos_id] for text in texts]
    return Sentences(sources, [target_limit(len(ids), MAX_TARGET_TOKENS) for ids in sources])


@pytest.fixture(scope="module")
def default() -> tuple[Sentences, list[list[int]]]:
    """Sentences, and what plain PyTorch makes of them."""
    model, tokenizer = load_checkpoint(CHECKPOINT)
    sentences = sentences_of(tokenizer, read_corpus(PAIRS).sources, model.config.eos_id)
    samples = [Sample(ids, (model.config.start_id,)) for ids in sentences.sources]
    return sentences, plain_pytorch.decode(model, samples, MAX_TARGET_TOKENS)


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default model as CTranslate2 loads it."""
    return convert.converted(Checkpoint.open(CHECKPOINT), tmp_path_factory.mktemp("peers"))


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(read_corpus(PAIRS), folder, vocabulary_size=SMALL["source_vocabulary_size"], joint=True)
    return folder


def test_ctranslate2_has_the_tokens_of_plain_pytorch(
    default: tuple[Sentences, list[list[int]]], converted: Path
) -> None:
    sentences, expected = default
    program = ct2.program(converted, Checkpoint.open(CHECKPOINT), "fp32", quick=True)
    contender = program.open(program.offline[0])
    try:
        actual = contender.translate(sentences)
        alone = [contender.translate(sentences.take([place])) for place in range(5)]
    finally:
        contender.close()
    assert len(actual) == 500
    assert sum(one != other for one, other in zip(actual, expected, strict=True)) == 0
    assert alone == [[ids] for ids in expected[:5]]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_architecture_is_converted_exactly(variant: str, tokenizer_folder: Path, tmp_path: Path) -> None:
    torch.manual_seed(3)
    model = Transformer(TransformerConfig(**SMALL | VARIANTS[variant])).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # A new model's biases are zero and its norms one, so that their place would not matter.
            parameter.add_(0.1 * torch.randn_like(parameter)).copy_(parameter.half())
    corpus = read_corpus(PAIRS)
    save_checkpoint(tmp_path / "checkpoint", model, tokenizer_folder, {}, Corpus(["Yes."], ["Ja."], []))
    checkpoint = Checkpoint.open(tmp_path / "checkpoint")
    peer = ct2.program(convert.converted(checkpoint, tmp_path), checkpoint, "fp32").open(ONE_THREAD)
    sources = sentences_of(Tokenizer.open(tokenizer_folder), corpus.sources[:40], 2).sources
    expected = greedy(model, sources, max_target_tokens=12)
    assert len({tuple(ids) for ids in expected}) > 1
    assert peer.translate(Sentences(sources, [12] * len(sources))) == expected


def test_the_random_model_never_ends_by_itself(tmp_path: Path) -> None:
    """Neither in plain PyTorch nor in CTranslate2, whose arithmetic here is int8."""
    config = random_model.SHAPES["base"] | {
        name: SMALL[name] for name in ("d_model", "heads", "d_ff", "encoder_layers")
    }
    config |= {"source_vocabulary_size": 500, "target_vocabulary_size": 500}
    random_model.write_checkpoint(tmp_path / "checkpoint", config, 25, 1)
    model, tokenizer = load_checkpoint(tmp_path / "checkpoint")
    sources = sentences_of(tokenizer, random_model.sentences(config, 25, 20, 1), 2).sources
    expected = greedy(model, sources, max_target_tokens=25)
    checkpoint = Checkpoint.open(tmp_path / "checkpoint")
    folder = convert.converted(checkpoint, tmp_path)
    assert {len(ids) for ids in expected} == {25}
    assert len({tuple(ids) for ids in expected}) > 1
    fp32, int8 = (ct2.program(folder, checkpoint, precision).open(ONE_THREAD) for precision in ("fp32", "int8"))
    sentences = Sentences(sources, [25] * len(sources))
    assert fp32.translate(sentences) == expected
    assert {len(ids) for ids in int8.translate(sentences)} == {25}


def test_ctranslate2_serves_behind_our_servicer(default: tuple[Sentences, list[list[int]]], converted: Path) -> None:
    _, expected = default
    tokenizer = Tokenizer.open(CHECKPOINT)
    texts = read_corpus(PAIRS).sources[:40]
    command = [sys.executable, "-m", "bench.peers.serve", f"--bundle={BUNDLE}", f"--checkpoint={CHECKPOINT}"]
    command += [f"--ctranslate2={converted}", "--precision=fp32", "--size=8", "--wait-ms=1", "--inter-threads=2"]
    with running(command) as server, Client(server.address) as client:
        translations = client.translate(texts, source_language="en", target_language="de")
    assert [translation.text for translation in translations] == [
        tokenizer.decode(ids).strip() for ids in expected[:40]
    ]


def test_our_side_decodes_the_same_at_once_and_one_by_one() -> None:
    texts = read_corpus(PAIRS).sources[:20]
    sentences = sentences_of(Tokenizer.open(BUNDLE), texts, 2)
    program = ours.program(BUNDLE, quick=True)
    together, alone = program.open(program.offline[0]), program.open(program.single[0])
    try:
        one_by_one = [alone.translate(sentences.take([place])) for place in range(len(sentences))]
        assert [[ids] for ids in together.translate(sentences)] == one_by_one
    finally:
        together.close()
        alone.close()


def test_sentences_that_no_segment_can_hold_are_left_out(tmp_path: Path) -> None:
    texts = read_corpus(PAIRS).sources[:5]
    data = tmp_path / "data.txt"
    data.write_text("\n".join([*texts[:2], "word " * 500, *texts[2:]]), encoding="utf-8")
    sentences, kept = real_sentences(BUNDLE, data)
    assert kept == texts
    assert sentences == sentences_of(Tokenizer.open(BUNDLE), texts, 2)
