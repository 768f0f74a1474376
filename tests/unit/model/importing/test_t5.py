"""Greedy ids of an imported T5, mT5 or umT5 are those of Hugging Face's `generate`, over all options."""

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from dragoman.errors import BundleError, DataError
from model.data import pad
from model.decoding import greedy
from model.importing.settings import ACTIVATIONS
from tests import hugging_face

TOKENS = 12
VOCABULARY = 29
EXAMPLES = 8
PLAIN: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "d_model": 16,
    "d_kv": 6,
    "d_ff": 20,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 3,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
    "tie_word_embeddings": False,
}
kinds = pytest.mark.parametrize("kind", list(hugging_face.T5_CLASSES))


def sources(seed: int, special: tuple[int, ...], eos: int) -> list[list[int]]:
    draw = random.Random(seed)
    text = [id_ for id_ in range(VOCABULARY) if id_ not in special]
    return [[*draw.choices(text, k=length), eos] for length in (1, 14, 6, 9, 4)]


@st.composite
def options(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    """Draws the settings of a config class: all that change what a model computes."""
    pad_id, eos, start = draw(st.permutations(range(6)))[:3]
    buckets = draw(st.integers(4, 12))
    gated = draw(st.sampled_from(["", "gated-"]))
    chosen = PLAIN | {
        "d_model": draw(st.sampled_from([8, 16, 22])),
        "d_kv": draw(st.integers(1, 9)),
        "d_ff": draw(st.integers(5, 40)),
        "num_layers": draw(st.integers(1, 3)),
        "num_decoder_layers": draw(st.sampled_from([None, 1, 2, 3])),
        "num_heads": draw(st.integers(1, 5)),
        "relative_attention_num_buckets": buckets,
        "relative_attention_max_distance": draw(st.integers(buckets // 2 + 1, 20)),
        "feed_forward_proj": gated + draw(st.sampled_from(sorted(ACTIVATIONS))),
        "layer_norm_epsilon": draw(st.sampled_from([1e-6, 1e-2])),
        "tie_word_embeddings": draw(st.booleans()),
        "initializer_factor": draw(st.sampled_from([1.0, 0.5])),
        "dropout_rate": draw(st.sampled_from([0.0, 0.1])),
        "pad_token_id": pad_id,
        "eos_token_id": eos,
        "decoder_start_token_id": draw(st.sampled_from([pad_id, start])),
    }
    if kind == "t5":
        chosen |= draw(st.sampled_from([{}, {"scale_decoder_outputs": True}, {"scale_decoder_outputs": False}]))
    return chosen


@kinds
@settings(max_examples=EXAMPLES)
@given(data=st.data(), seed=st.integers(0, 2**16))
def test_ids_are_those_of_generate(kind: str, data: st.DataObject, seed: int) -> None:
    chosen = data.draw(options(kind))
    padding, eos, start = (chosen[f"{name}_token_id"] for name in ("pad", "eos", "decoder_start"))
    banned = data.draw(st.sampled_from([[], [7, 8]]))
    theirs = hugging_face.random_model(kind, seed, **chosen)
    with TemporaryDirectory() as folder:
        hugging_face.save(theirs, Path(folder, "hf"), bad_words_ids=[[id_] for id_ in banned] or None)
        ours, _ = hugging_face.imported(Path(folder, "hf"), Path(folder, "ours"))
    batch = sources(seed, (padding, eos, start), eos)
    actual, expected = greedy(ours, batch, max_target_tokens=TOKENS), hugging_face.translate(theirs, batch, TOKENS)
    for source, *rows in zip(batch, actual, expected, strict=True):
        assert hugging_face.agree(theirs, source, [start], *rows)
    # Random models repeat themselves, so the logits of other targets are compared as well.
    padded, lengths = pad(batch, padding), torch.tensor([len(ids) for ids in batch])
    targets = torch.tensor([sources(seed + 1, (padding,), eos)[1]] * len(batch))
    with torch.no_grad():
        mask = torch.arange(padded.shape[1]) < lengths[:, None]
        logits = theirs(input_ids=padded, attention_mask=mask, decoder_input_ids=targets).logits
        difference = (ours(padded, lengths, targets) - logits).abs()
    difference[..., banned] = 0
    assert difference.max() < 1e-3 * logits.abs().max()


@kinds
def test_random_models_say_different_things(kind: str) -> None:
    """Models that say the same of every source would be equal whatever the import did."""
    theirs = hugging_face.random_model(kind, 3, **PLAIN)
    translations = hugging_face.translate(theirs, sources(3, (0, 1), 1), TOKENS)
    assert len({tuple(row) for row in translations}) >= 3
    assert len({id_ for row in translations for id_ in row}) >= 4


def edited(folder: Path, feed_forward: str = "relu", **changes: Any) -> Path:
    """Saves a T5 whose config.json has been changed; None takes a key out."""
    hugging_face.save(hugging_face.random_model("t5", 1, **PLAIN, feed_forward_proj=feed_forward), folder)
    file = folder / "config.json"
    config = json.loads(file.read_bytes()) | changes
    file.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    return folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feed_forward_proj": "gated-mish", "dense_act_fn": None}, "feed_forward_proj is 'gated-mish'; supported are"),
        ({"feed_forward_proj": "twice-gelu"}, "feed_forward_proj is 'twice-gelu'; supported are"),
        ({"dense_act_fn": "mish"}, "supported are"),
        ({"relative_attention_alibi": True}, "relative_attention_alibi is unknown here"),
        ({"architectures": ["T5EncoderModel"]}, "only T5ForConditionalGeneration translates"),
        ({"is_gated_act": "yes"}, "is_gated_act must be true or false"),
        ({"relative_attention_max_distance": 9}, "relative_max_distance 9 must be above half of relative_buckets 32"),
        ({"num_heads": 4}, "weights do not fit the configuration"),
    ],
)
def test_what_cannot_be_had_is_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises((DataError, BundleError), match=message):
        hugging_face.imported(edited(tmp_path / "hf", **changes), tmp_path / "ours")


@pytest.mark.parametrize(
    ("feed_forward", "said", "expected"),
    [("relu", {"feed_forward_proj": None}, ("relu", False)), ("gated-gelu", {}, ("gelu_tanh", True))],
)
def test_files_of_old_say_less(
    feed_forward: str, said: dict[str, Any], expected: tuple[str, bool], tmp_path: Path
) -> None:
    """Those of 2019 and of 2020 name neither the activation nor the gate nor the ties nor the largest distance."""
    names = ("dense_act_fn", "is_gated_act", "tie_word_embeddings", "scale_decoder_outputs")
    folder = edited(tmp_path / "hf", feed_forward, **dict.fromkeys([*names, "relative_attention_max_distance"]), **said)
    ours, _ = hugging_face.imported(folder, tmp_path / "ours")
    assert (ours.config.activation, ours.config.gated, ours.config.relative_max_distance) == (*expected, 128)
    theirs = hugging_face.random_model("t5", 1, **PLAIN, feed_forward_proj=feed_forward)
    batch = sources(5, (0, 1), 1)
    assert greedy(ours, batch, max_target_tokens=TOKENS) == hugging_face.translate(theirs, batch, TOKENS)


def test_weights_that_are_there_twice(tmp_path: Path) -> None:
    """As MADLAD-400 has its embedding; a second one of other values is refused."""
    folder = edited(tmp_path / "hf")
    tensors = load_file(folder / "model.safetensors")
    again = {"decoder.embed_tokens.weight": tensors["shared.weight"].clone()}
    save_file(tensors | again, folder / "model.safetensors", {"format": "pt"})
    hugging_face.imported(folder, tmp_path / "ours")
    again["decoder.embed_tokens.weight"][0, 0] += 1
    save_file(tensors | again, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(DataError, match=r"decoder.embed_tokens.weight is not shared.weight"):
        hugging_face.imported(folder, tmp_path / "ours")


def test_what_agrees_with_a_translation_is_the_same_but_for_ties() -> None:
    """The test above asks `agree`, which must tell other tokens, and a translation that ends sooner."""
    theirs = hugging_face.random_model("t5", 3, **PLAIN)
    [source, *_] = sources(3, (0, 1), 1)
    [row] = hugging_face.translate(theirs, [source], TOKENS)
    assert hugging_face.agree(theirs, source, [0], row, row)
    assert not hugging_face.agree(theirs, source, [0], row, row[:-1])
    assert not hugging_face.agree(theirs, source, [0], row, [*row[:-1], (row[-1] + 1) % VOCABULARY])
