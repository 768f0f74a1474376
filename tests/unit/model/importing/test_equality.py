"""Greedy ids of imported models are those of Hugging Face's `generate`, over the options of its config classes."""

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from model.data import pad
from model.decoding import greedy
from model.importing.settings import ACTIVATIONS
from tests import hugging_face

TOKENS = 10
VOCABULARY = 29
EXAMPLES = 12


def sources(seed: int, vocabulary: int, special: tuple[int, ...], eos: int) -> list[list[int]]:
    """Draws sources of several lengths, of ids that are text, each with its end."""
    draw = random.Random(seed)
    text = [id_ for id_ in range(vocabulary) if id_ not in special]
    return [[*draw.choices(text, k=length), eos] for length in (1, 3, 6, 9, 4)]


def padded(batch: list[list[int]], pad_id: int) -> tuple[torch.Tensor, torch.Tensor]:
    return pad(batch, pad_id), torch.tensor([len(ids) for ids in batch])


@st.composite
def settings_of(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    """Draws the settings of a config class: all that change what a model computes."""
    d_model = draw(st.sampled_from([8, 16, 24]))
    pad, eos, start = draw(st.permutations(range(6)))[:3]
    if kind == "marian" and draw(st.booleans()):
        start = pad  # as OPUS-MT has it
    chosen: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "d_model": d_model,
        "encoder_layers": draw(st.integers(1, 3)),
        "decoder_layers": draw(st.integers(1, 3)),
        "encoder_attention_heads": draw(st.sampled_from([1, 2, 4])),
        "decoder_attention_heads": draw(st.sampled_from([1, 2, 4])),
        "encoder_ffn_dim": draw(st.integers(5, 40)),
        "decoder_ffn_dim": draw(st.integers(5, 40)),
        "activation_function": draw(st.sampled_from(sorted(ACTIVATIONS))),
        "scale_embedding": draw(st.booleans()),
        "tie_word_embeddings": draw(st.booleans()),
        "encoder_layerdrop": draw(st.sampled_from([0.0, 0.5])),
        "dropout": draw(st.sampled_from([0.0, 0.3])),
        "max_position_embeddings": draw(st.integers(20, 40)),
        "pad_token_id": pad,
        "eos_token_id": eos,
        "bos_token_id": 6,
        "decoder_start_token_id": start,
        "forced_eos_token_id": draw(st.sampled_from([None, eos])),
    }
    if kind == "marian":
        share = draw(st.booleans())
        chosen["share_encoder_decoder_embeddings"] = share
        chosen["decoder_vocab_size"] = VOCABULARY if share else draw(st.integers(20, 35))
    return chosen


@pytest.mark.parametrize("kind", list(hugging_face.CLASSES))
@settings(max_examples=EXAMPLES)
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_ids_are_those_of_generate(kind: str, data: st.DataObject, seed: int) -> None:
    chosen = data.draw(settings_of(kind))
    padding, eos, start = (chosen[f"{name}_token_id"] for name in ("pad", "eos", "decoder_start"))
    banned = sorted({padding, *data.draw(st.sets(st.integers(6, 19), max_size=3))})
    forced = data.draw(st.sampled_from([None, 19]))
    theirs = hugging_face.random_model(kind, seed, **chosen)
    with TemporaryDirectory() as folder:
        hugging_face.save(
            theirs, Path(folder, "hf"), bad_words_ids=[[id_] for id_ in banned], forced_bos_token_id=forced
        )
        ours, _ = hugging_face.imported(Path(folder, "hf"), Path(folder, "ours"))
    batch = sources(seed, VOCABULARY, (padding, eos, start), eos)
    starts = None if forced is None else [[start, forced]] * len(batch)
    expected = hugging_face.translate(theirs, batch, TOKENS + (forced is not None))
    actual = greedy(ours, batch, max_target_tokens=TOKENS, start_ids=starts)
    begin = [start] if forced is None else [start, forced]
    for source, one, other in zip(batch, actual, expected, strict=True):
        assert hugging_face.agree(theirs, source, begin, one, other[forced is not None :])
    # Random models repeat themselves, so the logits of other targets are compared as well.
    targets = torch.tensor(sources(seed + 1, 20, (padding,), 19)[3:4] * len(batch))
    rows, lengths = padded(batch, padding)
    with torch.no_grad():
        mask = torch.arange(rows.shape[1]) < lengths[:, None]
        logits = theirs(input_ids=rows, attention_mask=mask, decoder_input_ids=targets).logits
        difference = (ours(rows, lengths, targets) - logits).abs()
    difference[..., banned] = 0
    assert difference.max() < 1e-3 * logits.abs().max()


@pytest.mark.parametrize("kind", list(hugging_face.CLASSES))
def test_random_models_say_different_things(kind: str, tmp_path: Path) -> None:
    """Models that say the same of every source would be equal whatever the import did."""
    theirs = hugging_face.random_model(kind, 3, **plain(kind))
    batch = sources(3, VOCABULARY, (0, 1, 2), 2)
    translations = hugging_face.translate(theirs, batch, TOKENS)
    assert len({tuple(row) for row in translations}) >= 3
    assert len({id_ for row in translations for id_ in row}) >= 4


@pytest.mark.parametrize("kind", list(hugging_face.CLASSES))
def test_several_first_ids_in_one_batch(kind: str, tmp_path: Path) -> None:
    theirs = hugging_face.random_model(kind, 5, **plain(kind))
    hugging_face.save(theirs, tmp_path / "hf")
    ours, _ = hugging_face.imported(tmp_path / "hf", tmp_path / "ours")
    batch = sources(5, VOCABULARY, (0, 1, 2), 2)
    starts = [[2, first] for first in (7, 8, 9, 7, 8)]
    expected = hugging_face.translate(theirs, batch, TOKENS, starts)
    assert greedy(ours, batch, max_target_tokens=TOKENS, start_ids=starts) == expected


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_keep_their_precision(dtype: torch.dtype, tmp_path: Path) -> None:
    theirs = hugging_face.random_model("mbart", 7, **plain("mbart")).to(dtype)
    hugging_face.save(theirs, tmp_path / "hf", bad_words_ids=[[1]])
    ours, _ = hugging_face.imported(tmp_path / "hf", tmp_path / "ours")
    from safetensors.torch import load_file

    stored = load_file(tmp_path / "ours" / "model.safetensors")
    assert {name: tensor.dtype for name, tensor in stored.items() if tensor.dtype != dtype} == {
        "output.bias": torch.float32
    }
    batch = sources(7, VOCABULARY, (0, 1, 2), 2)
    expected = hugging_face.translate(theirs.float(), batch, TOKENS)
    assert greedy(ours, batch, max_target_tokens=TOKENS) == expected


def plain(kind: str) -> dict[str, Any]:
    """Gives settings of a small model."""
    return {
        "vocab_size": VOCABULARY,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 20,
        "max_position_embeddings": 32,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "tie_word_embeddings": False,
        **({"share_encoder_decoder_embeddings": False} if kind == "marian" else {}),
    }
