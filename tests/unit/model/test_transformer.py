"""One definition, two ways to run it: the whole target at once, and a step at a time."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from model.config import TransformerConfig
from model.transformer import Transformer

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "post-norm": {"norm": "post"},
    "gelu": {"activation": "gelu"},
    "silu": {"activation": "silu"},
    "halves": {"positions": "sinusoidal_halves"},
    "learned": {"positions": "learned"},
    "learned-offset": {"positions": "learned", "position_offset": 2},
    "offset": {"position_offset": 3},
    "deep-encoder": {"encoder_layers": 3, "decoder_layers": 1},
    "deep-decoder": {"encoder_layers": 1, "decoder_layers": 3},
    "output-bias": {"output_bias": True},
    "embedding-norm": {"embedding_norm": True},
    "no-scale": {"scale_embedding": False},
    "untied": {"tie_output": False},
    "apart": {"share_embeddings": False, "source_vocabulary_size": 13},
    "apart-untied": {"share_embeddings": False, "tie_output": False, "target_vocabulary_size": 11},
    "one-head": {"heads": 1},
    "marian": {"norm": "post", "activation": "silu", "positions": "sinusoidal_halves", "output_bias": True},
    "mbart": {"positions": "learned", "position_offset": 2, "embedding_norm": True, "activation": "gelu"},
    "ssru": {"decoder_cell": "ssru"},
    "ssru, without biases": {"decoder_cell": "ssru", "bias": False, "norm_kind": "rms"},
    "firefox": {
        "decoder_cell": "ssru", "norm": "post", "positions": "sinusoidal_halves", "output_bias": True,
        "norm_epsilon": 1e-6, "share_embeddings": False, "source_vocabulary_size": 13,
    },
    "heads-apart": {"attention_head_dim": 6, "heads": 3},
    "no-bias": {"bias": False},
    "umt5": {"positions": "relative", "relative_shared": False, "relative_buckets": 6, "relative_max_distance": 5},
    "t5": {
        "positions": "relative", "relative_buckets": 5, "relative_max_distance": 4, "norm_kind": "rms", "bias": False,
        "scale_attention": False, "scale_embedding": False, "attention_head_dim": 3, "heads": 5, "gated": True,
    },
}  # fmt: skip
CONFIGURATIONS = st.fixed_dictionaries(
    {
        "norm": st.sampled_from(["pre", "post"]),
        "activation": st.sampled_from(["relu", "gelu", "silu"]),
        "norm_kind": st.sampled_from(["layer", "rms"]),
        "gated": st.booleans(),
        "bias": st.booleans(),
        "attention_head_dim": st.sampled_from([None, 3, 5]),
        "scale_attention": st.booleans(),
        "positions": st.sampled_from(["sinusoidal", "sinusoidal_halves", "learned", "relative"]),
        "decoder_cell": st.sampled_from(["attention", "ssru"]),
        "relative_buckets": st.integers(4, 8),
        "relative_max_distance": st.integers(5, 9),
        "relative_shared": st.booleans(),
        "position_offset": st.integers(0, 3),
        "encoder_layers": st.integers(1, 3),
        "decoder_layers": st.integers(1, 3),
        "heads": st.sampled_from([1, 2, 4, 8]),
        "output_bias": st.booleans(),
        "embedding_norm": st.booleans(),
        "scale_embedding": st.booleans(),
        "tie_output": st.booleans(),
        "share_embeddings": st.booleans(),
    }
).filter(lambda fields: (fields["decoder_cell"], fields["positions"]) != ("ssru", "relative"))
LENGTHS = st.lists(st.integers(1, 7), min_size=1, max_size=4)
Build = Callable[..., Transformer]
variants = pytest.mark.parametrize("fields", VARIANTS.values(), ids=VARIANTS)


def random_ids(seed: int, rows: int, length: int, vocabulary: int) -> Tensor:
    return torch.randint(vocabulary, (rows, length), generator=torch.Generator().manual_seed(seed))


def source_of(model: Transformer, lengths: list[int], seed: int = 0) -> tuple[Tensor, Tensor]:
    ids = random_ids(seed, len(lengths), max(lengths), model.config.source_vocabulary_size)
    return ids, torch.tensor(lengths, dtype=torch.int32)


def target_of(model: Transformer, rows: int, length: int, seed: int = 1) -> Tensor:
    return random_ids(seed, rows, length, model.config.target_vocabulary_size)


def stepwise(
    model: Transformer, source: Tensor, lengths: Tensor, target: Tensor, starts: list[int], spare: int = 0
) -> Tensor:
    """Logits of the rows decoded side by side, each begun at a step of its own, in buffers with room to spare.

    What no length reaches holds large numbers, as a slot does that another sentence has left. The state of a recurrence
    begins with zeros.
    """
    memory = model.project_memory(model.encode(source, lengths))
    memory = [(roomier(key, lengths, spare), roomier(value, lengths, spare)) for key, value in memory]
    size = target.shape[1]
    caches = model.new_caches(len(target), size + spare)
    if model.config.decoder_cell == "attention":
        caches = [(key.fill_(50.0), value.fill_(-50.0)) for key, value in caches]
    logits = torch.empty(*target.shape, model.config.target_vocabulary_size)
    for step in range(max(starts) + size):
        ages = torch.tensor([step - start for start in starts])
        active = ((ages >= 0) & (ages < size)).nonzero()[:, 0]
        rows, ages = active.tolist(), ages[active]
        parts = [tuple(part[active] for part in cache) for cache in caches]
        of_rows = [(key[active], value[active]) for key, value in memory]
        now, parts = model.step(target[rows, ages], ages.int(), parts, of_rows, lengths[active])
        for cache, new in zip(caches, parts, strict=True):
            for part, new_part in zip(cache, new, strict=True):
                part[active] = new_part
        logits[rows, ages] = now
    return logits


def roomier(states: Tensor, lengths: Tensor, spare: int) -> Tensor:
    """The same keys or values [batch, heads, source, head_dim] in a longer buffer."""
    batch, heads, size, head_dim = states.shape
    buffer = torch.full((batch, heads, size + spare, head_dim), 50.0)
    for row, length in enumerate(lengths.tolist()):
        buffer[row, :, :length] = states[row, :, :length]
    return buffer


@variants
@torch.inference_mode()
def test_step_agrees_with_forward(build: Build, fields: dict[str, Any]) -> None:
    model = build(**fields)
    source, lengths = source_of(model, [5, 1, 7])
    target = target_of(model, 3, 6)
    expected = model(source, lengths, target)
    torch.testing.assert_close(stepwise(model, source, lengths, target, [0, 0, 0]), expected, atol=2e-5, rtol=1e-4)


@settings(deadline=None, max_examples=30)
@given(fields=CONFIGURATIONS, lengths=LENGTHS, target=st.integers(1, 6), data=st.data())
@torch.inference_mode()
def test_step_agrees_with_forward_whatever_the_configuration(
    build: Build, fields: dict[str, Any], lengths: list[int], target: int, data: st.DataObject
) -> None:
    model = build(data.draw(st.integers(0, 1000)), **fields)
    source, source_lengths = source_of(model, lengths)
    ids = target_of(model, len(lengths), target)
    starts = data.draw(st.lists(st.integers(0, 3), min_size=len(lengths), max_size=len(lengths)))
    actual = stepwise(model, source, source_lengths, ids, starts, data.draw(st.integers(0, 3)))
    torch.testing.assert_close(actual, model(source, source_lengths, ids), atol=5e-5, rtol=1e-4)


@variants
@torch.inference_mode()
def test_padding_does_not_change_a_row(build: Build, fields: dict[str, Any]) -> None:
    model = build(**fields)
    lengths = [4, 9, 1, 6]
    source, source_lengths = source_of(model, lengths)
    target = target_of(model, len(lengths), 5)
    memory, logits = model.encode(source, source_lengths), model(source, source_lengths, target)
    for row, length in enumerate(lengths):
        alone = source[row : row + 1, :length], source_lengths[row : row + 1]
        torch.testing.assert_close(memory[row, :length], model.encode(*alone)[0], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(logits[row], model(*alone, target[row : row + 1])[0], atol=2e-5, rtol=1e-4)


@variants
@torch.inference_mode()
def test_what_stands_in_the_padding_does_not_matter(build: Build, fields: dict[str, Any]) -> None:
    model = build(**fields)
    source, lengths = source_of(model, [4, 7, 1])
    target = target_of(model, 3, 5)
    expected = model(source, lengths, target)
    for row, length in enumerate(lengths.tolist()):
        source[row, length:] = (source[row, length:] + 1) % model.config.source_vocabulary_size
    assert torch.equal(model(source, lengths, target), expected)


@variants
@torch.inference_mode()
def test_the_future_does_not_change_the_past(build: Build, fields: dict[str, Any]) -> None:
    model = build(**fields)
    source, lengths = source_of(model, [4, 7])
    target = target_of(model, 2, 6)
    expected = model(source, lengths, target)
    for known in range(1, 6):
        changed = target.clone()
        changed[:, known:] = (changed[:, known:] + 1) % model.config.target_vocabulary_size
        logits = model(source, lengths, changed)
        assert torch.equal(logits[:, :known], expected[:, :known])
        assert not torch.equal(logits[:, known:], expected[:, known:])


@torch.inference_mode()
def test_every_source_token_and_the_order_count(build: Build) -> None:
    model = build()
    source, lengths = torch.tensor([[3, 4, 5, 6]]), torch.tensor([4])
    target = target_of(model, 1, 3)
    expected = model(source, lengths, target)
    for changed in ([[7, 4, 5, 6]], [[3, 4, 5, 7]], [[4, 3, 5, 6]]):
        assert not torch.allclose(model(torch.tensor(changed), lengths, target), expected)


def test_sharing_and_tying(build: Build) -> None:
    shared, untied = build(), build(tie_output=False)
    assert shared.output.weight is shared.target_embedding.weight
    assert shared.target_embedding is shared.source_embedding
    assert untied.output.weight is not untied.target_embedding.weight
    apart = build(share_embeddings=False)
    assert apart.target_embedding is not apart.source_embedding
    assert apart.output.weight is apart.target_embedding.weight


def test_packed_projections_begin_as_if_they_lay_apart() -> None:
    torch.manual_seed(0)
    width = 64
    model = Transformer(
        TransformerConfig(source_vocabulary_size=9, target_vocabulary_size=9, d_model=width, encoder_layers=1)
    )
    bound = (6 / (2 * width)) ** 0.5
    recurrent = Transformer(model.config.model_copy(update={"decoder_cell": "ssru"}))
    for name, of in (
        ("encoder.0.self_attention.query_key_value", model),
        ("decoder.0.cross_attention.key_value", model),
        ("decoder.0.recurrence.gate_input", recurrent),
    ):
        weight = of.get_parameter(f"{name}.weight")
        assert 0.98 * bound < weight.abs().max() <= bound
        assert not of.get_parameter(f"{name}.bias").any()


def test_dropout_is_of_training_alone(build: Build) -> None:
    config = build().config
    torch.manual_seed(0)
    model = Transformer(config, dropout=0.5)
    source, lengths = source_of(model, [4, 7])
    target = target_of(model, 2, 6)
    assert not torch.equal(model(source, lengths, target), model(source, lengths, target))
    model.eval()
    assert torch.equal(model(source, lengths, target), model(source, lengths, target))


@variants
def test_every_weight_gets_a_gradient(build: Build, fields: dict[str, Any]) -> None:
    model = build(**fields)
    source, lengths = source_of(model, [4, 7])
    model(source, lengths, target_of(model, 2, 6)).square().mean().backward()
    without = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not without
