import math
import pickle
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from dragoman.tokenizer import Tokenizer
from export.calibrate import COVERED, calibrate, steady
from model.data import Corpus
from model.transformer import Transformer

PAIRS = 40


@pytest.fixture
def pairs(corpus: Corpus) -> Corpus:
    return Corpus(corpus.sources[:PAIRS], corpus.targets[:PAIRS], [])


def layers(model: Transformer) -> dict[str, nn.Linear]:
    return {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}


@torch.inference_mode()
def inputs_alone(model: Transformer, tokenizer: Tokenizer, pairs: Corpus) -> dict[str, Tensor]:
    """What each layer reads, pair by pair, so that there is no padding."""
    seen: dict[str, list[Tensor]] = {name: [] for name in layers(model)}
    handles = [
        layer.register_forward_pre_hook(lambda _, inputs, name=name: seen[name].append(inputs[0].abs().flatten()))
        for name, layer in layers(model).items()
    ]
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        ids = [*tokenizer.encode(source), model.config.eos_id]
        target_ids = [model.config.start_id, *tokenizer.encode_target(target)]
        model(torch.tensor([ids]), torch.tensor([len(ids)]), torch.tensor([target_ids]))
    for handle in handles:
        handle.remove()
    return {name: torch.cat(values) for name, values in seen.items()}


def test_ranges_are_those_of_the_sentences_alone(loaded: tuple[Transformer, Tokenizer], pairs: Corpus) -> None:
    ranges = calibrate(*loaded, pairs)
    alone = inputs_alone(*loaded, pairs)
    assert ranges.keys() == alone.keys()
    for name, values in alone.items():
        expected = float(values.sort().values[int(COVERED * values.numel()) - 1])
        assert expected * (1 - 1e-5) <= ranges[name] <= expected * 1.126, name  # rounded up


def test_it_does_not_matter_what_is_in_a_batch(loaded: tuple[Transformer, Tokenizer], pairs: Corpus) -> None:
    backwards = Corpus(pairs.sources[::-1], pairs.targets[::-1], [])
    assert calibrate(*loaded, pairs) == pytest.approx(dict(calibrate(*loaded, backwards)), rel=1e-4)


def test_the_model_is_left_as_it_was(loaded: tuple[Transformer, Tokenizer], pairs: Corpus) -> None:
    model, tokenizer = loaded
    calibrate(model, tokenizer, pairs)
    pickle.dumps(model)  # which no module can be that keeps a function of calibrate


def test_a_sentence_beyond_the_positions(
    loaded: tuple[Transformer, Tokenizer], random_model: Callable[..., Transformer]
) -> None:
    _, tokenizer = loaded
    ranges = calibrate(random_model(1, 1), tokenizer, Corpus(["a " * 400], ["b " * 400], []))
    assert all(value > 0 for value in ranges.values())


@settings(deadline=None)
@given(st.floats(2.0**-20, 2.0**20, width=32))
def test_a_steady_value_is_hardly_larger_and_one_of_few(value: float) -> None:
    [rounded] = steady(torch.tensor([value])).tolist()
    assert value <= rounded <= value * 1.125
    mantissa, _ = math.frexp(rounded)
    assert (mantissa * 16).is_integer()


def test_last_digits_do_not_matter() -> None:
    """As other processors' orders of adding up make them differ: by a millionth."""
    values = torch.rand(2000, generator=torch.Generator().manual_seed(0)) * 10
    noisy = values * (1 + 1e-6 * torch.randn(2000, generator=torch.Generator().manual_seed(1)))
    assert (steady(values) != steady(noisy)).sum() <= 2
    assert (values != noisy).sum() > 1000


def test_nothing_stays_nothing() -> None:
    assert steady(torch.zeros(2)).tolist() == [0.0, 0.0]
