from collections.abc import Callable
from typing import Protocol

import pytest

from dragoman.bundle import Bundle, Precision, target_limit
from dragoman.tokenizer import Tokenizer
from export.parity import MAX_BLEU_LOSS, Parity, Yardstick, compare, decode_with_checkpoint, decode_with_engine
from model.data import Corpus
from model.decoding import greedy
from model.transformer import Transformer


class Exported(Protocol):
    """Of the fixture `exported`."""

    bundle: Bundle
    parity: Parity


Export = Callable[[Precision], Exported]


@pytest.mark.parametrize(
    ("precision", "equal", "bleu", "passed"),
    [
        ("fp32", 500, 30.0, True),
        ("fp32", 499, 30.0, False),
        ("fp32", 499, 31.0, False),
        ("int8", 0, 30.0, True),
        ("int8", 0, 31.0, True),
        ("int8", 0, 30.0 - MAX_BLEU_LOSS, True),
        ("int8", 499, 29.69, False),
        ("fp16", 499, 29.8, True),
        ("fp16", 499, 29.0, False),
    ],
)
def test_what_passes(precision: str, equal: int, bleu: float, passed: bool) -> None:
    assert Parity(precision, 500, equal, checkpoint_bleu=30.0, bundle_bleu=bleu).passed is passed


def test_for_people_and_for_json() -> None:
    parity = Parity("int8", 500, 421, checkpoint_bleu=44.128, bundle_bleu=44.0)
    assert str(parity) == "int8: 421 of 500 sentences equal to plain PyTorch; BLEU 44.00, checkpoint 44.13"
    assert Parity(**parity.as_dict()) == parity


def test_fp32_is_plain_pytorch_in_all_sentences(exported: Export, corpus: Corpus) -> None:
    parity = exported("fp32").parity
    assert parity.sentences == parity.equal == len(corpus)


def test_fp16_runs_on_the_cpu_and_rarely_differs(exported: Export, corpus: Corpus) -> None:
    parity = exported("fp16").parity
    assert parity.passed
    assert parity.equal > 0.8 * len(corpus)


def test_int8_passes(exported: Export) -> None:
    assert exported("int8").parity.passed


def sources_of(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    return [[*tokenizer.encode(text), 2] for text in texts]


def test_the_yardstick_is_each_sentence_alone_under_its_own_limit(
    loaded: tuple[Transformer, Tokenizer], corpus: Corpus
) -> None:
    model, tokenizer = loaded
    sources = sources_of(tokenizer, corpus.sources[:70])
    together = decode_with_checkpoint(model, sources, 40)
    for source, target in zip(sources[::6], together[::6], strict=True):
        assert [target] == greedy(model, [source], max_target_tokens=target_limit(len(source), 40))


@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
def test_the_engine_decodes_alike_whoever_is_beside(
    exported: Export, loaded: tuple[Transformer, Tokenizer], corpus: Corpus, precision: Precision
) -> None:
    _, tokenizer = loaded
    sources = sources_of(tokenizer, corpus.sources[:60])
    together = decode_with_engine(exported(precision).bundle, sources)
    assert together == decode_with_engine(exported(precision).bundle, sources[::-1])[::-1]
    for row in range(0, 60, 12):
        assert decode_with_engine(exported(precision).bundle, [sources[row]]) == [together[row]]


def test_a_bundle_of_another_checkpoint_is_found_out(
    exported: Export, random_model: Callable[..., Transformer], loaded: tuple[Transformer, Tokenizer], corpus: Corpus
) -> None:
    other = random_model(2, 2)
    yardstick = Yardstick.of(other, loaded[1], Corpus(corpus.sources[:40], corpus.targets[:40], []), 40)
    parity = compare(yardstick, loaded[1], exported("fp32").bundle)
    assert parity.equal < 40
    assert not parity.passed
