from collections.abc import Callable
from typing import Protocol

import pytest

from dragoman.bundle import Bundle, Precision, target_limit
from dragoman.tokenizer import Tokenizer
from export.parity import (
    MAX_BLEU_LOSS,
    MAX_LOG_PROBABILITY_LOSS,
    MIN_AGREEMENT,
    Found,
    Parity,
    compare,
    decode,
    log_probability_loss,
)
from export.samples import Sample
from model.corpus import Corpus
from model.decoding import greedy
from model.transformer import Transformer
from tests import plain_pytorch


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
    parity = Parity(precision, 500, equal, agreement=50.0, checkpoint_bleu=30.0, bundle_bleu=bleu)
    assert parity.passed is passed


@pytest.mark.parametrize(
    ("precision", "equal", "agreement", "passed"),
    [
        ("fp32", 400, 100.0, True),
        ("fp32", 399, 100.0, False),
        ("int8", 300, MIN_AGREEMENT, True),
        ("int8", 0, MIN_AGREEMENT, True),
        ("int8", 400, MIN_AGREEMENT - 0.01, False),
        ("fp16", 300, MIN_AGREEMENT, True),
        ("fp16", 400, MIN_AGREEMENT - 0.01, False),
    ],
)
def test_what_passes_without_references(precision: str, equal: int, agreement: float, passed: bool) -> None:
    assert Parity(precision, 400, equal, agreement).passed is passed


@pytest.mark.parametrize(
    ("precision", "loss", "passed"),
    [
        ("int8", MAX_LOG_PROBABILITY_LOSS, True),
        ("int8", -0.2, True),
        ("int8", MAX_LOG_PROBABILITY_LOSS + 0.001, False),
        ("fp16", float("nan"), False),
    ],
)
def test_what_passes_on_sentences_that_nobody_chose(precision: str, loss: float, passed: bool) -> None:
    assert Parity(precision, 40, 3, agreement=20.0, log_probability_loss=loss).passed is passed


@pytest.mark.parametrize(
    ("parity", "doubted"),
    [
        (Parity("int8", 40, 26, 85.43, log_probability_loss=0.02), True),
        (Parity("int8", 40, 30, 85.43, log_probability_loss=0.02), True),
        (Parity("fp16", 40, 29, 95.0), True),
        (Parity("int8", 40, 30, MIN_AGREEMENT), False),
        (Parity("int8", 500, 1, 50.0, checkpoint_bleu=30.0, bundle_bleu=30.0), False),
    ],
)
def test_what_is_less_than_as_a_rule_is_told(parity: Parity, doubted: bool) -> None:
    figures = f"{parity.equal} of {parity.sentences} sentences are equal, and BLEU is {parity.agreement:.2f}; as a rule"
    assert parity.passed
    assert parity.doubts == (f"{figures} these are at least 75% and 88" if doubted else "")


def test_how_probable_the_translations_of_the_checkpoint_stay(exported: Export, samples: list[Sample]) -> None:
    found = decode(exported("fp32").bundle, samples[:40])
    assert any(one.ended for one in found)
    assert log_probability_loss(exported("fp32").bundle, samples[:40], found) == pytest.approx(0, abs=1e-6)
    loss = log_probability_loss(exported("int8").bundle, samples[:40], found)
    assert loss is not None
    assert loss < MAX_LOG_PROBABILITY_LOSS
    # Of another model, they would have been more probable than they are to this one.
    others = [one._replace(log_probability=one.log_probability + len(one.ids)) for one in found]
    loss = log_probability_loss(exported("fp32").bundle, samples[:40], others)
    assert loss is not None
    assert loss > MAX_LOG_PROBABILITY_LOSS
    assert log_probability_loss(exported("fp32").bundle, samples[:1], [Found([5], -1.0, ended=False)]) is None


def test_for_people() -> None:
    parity = Parity("int8", 500, 421, agreement=93.1, checkpoint_bleu=44.128, bundle_bleu=44.0)
    told = "int8: 421 of 500 sentences equal to fp32; BLEU of one against the other 93.10"
    assert str(parity) == f"{told}; against references 44.00, checkpoint 44.13"
    assert str(Parity("int8", 500, 421, 93.1)) == f"{told} (no references: at least {MIN_AGREEMENT:g})"
    own = "log-probability of a token of fp32's translations less by 0.020 (at most 0.1)"
    assert str(Parity("int8", 500, 421, 93.1, log_probability_loss=0.02)) == f"{told}; {own}"


def test_fp32_is_plain_pytorch_in_all_sentences(
    exported: Export, loaded: tuple[Transformer, Tokenizer], samples: list[Sample]
) -> None:
    parity = exported("fp32").parity
    assert parity.sentences == parity.equal == len(samples)
    assert "sentences equal alone and in batches" in str(parity)
    found = decode(exported("fp32").bundle, samples)
    assert [one.ids for one in found] == plain_pytorch.decode(loaded[0], samples, 40)


def test_fp16_runs_on_the_cpu_and_rarely_differs(exported: Export, corpus: Corpus) -> None:
    parity = exported("fp16").parity
    assert parity.passed
    assert parity.equal > 0.8 * len(corpus)


def test_int8_passes(exported: Export) -> None:
    assert exported("int8").parity.passed


def test_the_yardstick_is_each_sentence_alone_under_its_own_limit(
    loaded: tuple[Transformer, Tokenizer], samples: list[Sample]
) -> None:
    model, _ = loaded
    # Of two languages, of which one has a start id of its own, and the other two ids.
    starts = [(1,), (9,), (9, 7)] * 20
    others = [one._replace(start_ids=start_ids) for one, start_ids in zip(samples, starts, strict=False)]
    together = plain_pytorch.decode(model, others, 40)
    for one, target in list(zip(others, together, strict=True))[::7]:
        limit = target_limit(len(one.source), 40)
        assert [target] == greedy(model, [one.source], max_target_tokens=limit, start_ids=[one.start_ids])


@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
def test_the_engine_decodes_alike_whoever_is_beside(
    exported: Export, samples: list[Sample], precision: Precision
) -> None:
    bundle = exported(precision).bundle
    together = decode(bundle, samples[:60])
    assert together == decode(bundle, samples[:60][::-1])[::-1]
    for row in range(0, 60, 12):
        assert decode(bundle, [samples[row]], slots=1) == [together[row]]


def test_without_references_a_bundle_is_held_against_its_checkpoint_alone(
    exported: Export, loaded: tuple[Transformer, Tokenizer], samples: list[Sample]
) -> None:
    model, tokenizer = loaded
    plain = [one._replace(reference=None) for one in samples]
    plain[::2] = [one._replace(start_ids=(5,)) for one in plain[::2]]
    parity = compare(plain, plain_pytorch.decode(model, plain, 40), tokenizer, exported("fp32").bundle)
    assert parity == Parity("fp32", len(samples), len(samples), 100.0)


def test_a_bundle_of_another_checkpoint_is_found_out(
    exported: Export,
    random_model: Callable[..., Transformer],
    loaded: tuple[Transformer, Tokenizer],
    samples: list[Sample],
) -> None:
    expected = plain_pytorch.decode(random_model(2, 2), samples[:40], 40)
    parity = compare(samples[:40], expected, loaded[1], exported("fp32").bundle)
    assert parity.equal < 40
    assert parity.agreement < 50
    assert not parity.passed
