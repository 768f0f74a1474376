from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.decoding import greedy
from model.transformer import Transformer

Build = Callable[..., Transformer]
EOS = 2
SOURCES = st.lists(st.lists(st.integers(3, 16), max_size=8).map(lambda ids: [*ids, EOS]), min_size=1, max_size=6)
VARIANTS: list[dict[str, Any]] = [
    {},
    {"norm": "post", "activation": "gelu"},
    {"output_bias": True},
    {"decoder_cell": "ssru", "norm": "post"},
]


@torch.inference_mode()
def naive(model: Transformer, source: list[int], limit: int) -> list[int]:
    """Greedy decoding as a definition: the full forward over all that there is, once a token."""
    target = [model.config.start_id]
    while len(target) <= limit:
        logits = model(torch.tensor([source]), torch.tensor([len(source)]), torch.tensor([target]))
        token = int(logits[0, -1].argmax())
        if token == model.config.eos_id:
            break
        target.append(token)
    return target[1:]


@pytest.mark.parametrize("fields", VARIANTS)
@settings(deadline=None, max_examples=8)
@given(sources=SOURCES, seed=st.integers(0, 50))
def test_a_batch_is_each_alone(build: Build, fields: dict[str, Any], sources: list[list[int]], seed: int) -> None:
    model = build(seed, **fields)
    together = greedy(model, sources, max_target_tokens=10)
    assert together == [greedy(model, [source], max_target_tokens=10)[0] for source in sources]
    assert together == [naive(model, source, 10) for source in sources]


def eager_to_end(build: Build) -> Transformer:
    """A model that ends each sentence at a step that depends on the source; chosen by trial."""
    model = build(0, output_bias=True, tie_output=False)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "cross_attention" in name and parameter.dim() == 2:
                parameter.mul_(3.0)
        model.output.bias[EOS] += 2.5
    return model


def test_rows_end_each_at_its_own_time(build: Build) -> None:
    model = eager_to_end(build)
    sources = [[*range(3, 3 + n), EOS] for n in range(1, 12)]
    targets = greedy(model, sources, max_target_tokens=12)
    assert len({len(target) for target in targets}) > 2
    assert not any(EOS in target for target in targets)
    assert targets == [naive(model, source, 12) for source in sources]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_limit(build: Build, limit: int) -> None:
    (long,) = greedy(build(0), [[4, 5, EOS]], max_target_tokens=9)
    assert len(long) == 9
    assert greedy(build(0), [[4, 5, EOS]], max_target_tokens=limit) == [long[:limit]]


def test_as_many_tokens_as_positions(build: Build) -> None:
    model = build(0, positions="learned", max_positions=6)
    assert len(greedy(model, [[4, 5, 6, 7, 8, EOS]], max_target_tokens=6)[0]) <= 6
