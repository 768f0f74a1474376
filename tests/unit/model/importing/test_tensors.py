"""What is read from tensors and not from flags, and which files of weights can be read."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from dragoman.errors import BundleError, DataError, DragomanError
from model.decoding import greedy
from model.importing.weights import open_weights
from tests import hugging_face

SETTINGS = {
    "vocab_size": 23,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 24,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
BATCH = [[5, 6, 7, 2], [9, 2], [10, 11, 12, 13, 14, 2]]


def saved(folder: Path, kind: str = "mbart", **settings: object) -> Path:
    return hugging_face.save(hugging_face.random_model(kind, 4, **{**SETTINGS, **settings}), folder)


def set_config(folder: Path, **fields: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def expected(folder: Path, kind: str = "mbart") -> list[list[int]]:
    return hugging_face.translate(hugging_face.CLASSES[kind][1].from_pretrained(folder).eval(), BATCH, 8)


def test_a_flag_that_ties_what_is_not_tied(tmp_path: Path) -> None:
    saved(tmp_path / "hf", tie_word_embeddings=False)
    set_config(tmp_path / "hf", tie_word_embeddings=True)
    ours, warnings = hugging_face.imported(tmp_path / "hf", tmp_path / "ours")
    assert not ours.config.tie_output
    assert not ours.config.share_embeddings
    assert list(warnings) == [
        "config.json: tie_word_embeddings is true, but the output differs from the embedding: the tensors are used",
        "config.json: the embeddings of encoder and decoder should be one, but differ: the tensors are used",
    ]
    assert greedy(ours, BATCH, max_target_tokens=8) == expected(tmp_path / "hf")


def test_a_flag_that_unties_what_is_tied(tmp_path: Path) -> None:
    """Such files are there with one tensor for all: the model of the right flag is meant."""
    saved(tmp_path / "hf", tie_word_embeddings=True)
    wanted = expected(tmp_path / "hf")
    set_config(tmp_path / "hf", tie_word_embeddings=False)
    ours, warnings = hugging_face.imported(tmp_path / "hf", tmp_path / "ours")
    assert ours.config.tie_output
    assert ours.config.share_embeddings
    assert list(warnings) == [
        "config.json: tie_word_embeddings is false, but there is no lm_head.weight: the embedding is used"
    ]
    assert greedy(ours, BATCH, max_target_tokens=8) == wanted


def test_equal_tensors_are_stored_once(tmp_path: Path) -> None:
    saved(tmp_path / "hf", tie_word_embeddings=True)
    tensors = load_file(tmp_path / "hf" / "model.safetensors")
    table = tensors["model.shared.weight"]
    copies = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    save_file(tensors | {name: table.clone() for name in copies}, tmp_path / "hf" / "model.safetensors")
    ours, warnings = hugging_face.imported(tmp_path / "hf", tmp_path / "ours")
    assert ours.config.tie_output
    assert ours.config.share_embeddings
    assert list(warnings) == []


def test_positions_of_the_file_that_are_not_those_of_the_formula(tmp_path: Path) -> None:
    """Half precision rounds them; transformers reads what is in the file."""
    saved(tmp_path / "hf", "marian")
    tensors = load_file(tmp_path / "hf" / "model.safetensors")
    for side in ("encoder", "decoder"):
        tensors[f"model.{side}.embed_positions.weight"] = torch.randn(24, 16)
    save_file(tensors, tmp_path / "hf" / "model.safetensors")
    ours, _ = hugging_face.imported(tmp_path / "hf", tmp_path / "ours")
    assert ours.config.positions == "learned"
    assert greedy(ours, BATCH, max_target_tokens=8) == expected(tmp_path / "hf", "marian")


@pytest.mark.parametrize("shape", [(24,), (24, 15), (23, 16)])
def test_positions_of_another_shape(tmp_path: Path, shape: tuple[int, ...]) -> None:
    saved(tmp_path / "hf", "marian")
    tensors = load_file(tmp_path / "hf" / "model.safetensors")
    for side in ("encoder", "decoder"):
        tensors[f"model.{side}.embed_positions.weight"] = torch.ones(shape)
    save_file(tensors, tmp_path / "hf" / "model.safetensors")
    with pytest.raises(BundleError, match=r"source_positions\.table is"):
        hugging_face.imported(tmp_path / "hf", tmp_path / "ours")


@pytest.mark.parametrize("as_zip", [True, False])
def test_files_of_torch(tmp_path: Path, as_zip: bool) -> None:
    saved(tmp_path / "hf", "m2m_100")
    wanted = expected(tmp_path / "hf", "m2m_100")
    tensors = load_file(tmp_path / "hf" / "model.safetensors")
    tensors["model.encoder.version"] = torch.tensor([3.0])
    (tmp_path / "hf" / "model.safetensors").unlink()
    torch.save(tensors, tmp_path / "hf" / "pytorch_model.bin", _use_new_zipfile_serialization=as_zip)
    ours, _ = hugging_face.imported(tmp_path / "hf", tmp_path / "ours")
    assert greedy(ours, BATCH, max_target_tokens=8) == wanted


def test_weights_in_several_files(tmp_path: Path) -> None:
    saved(tmp_path / "hf")
    wanted = expected(tmp_path / "hf")
    tensors = load_file(tmp_path / "hf" / "model.safetensors")
    (tmp_path / "hf" / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({name: tensors[name] for name in part}, tmp_path / "hf" / file)
    index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
    (tmp_path / "hf" / "model.safetensors.index.json").write_text(json.dumps(index))
    ours, _ = hugging_face.imported(tmp_path / "hf", tmp_path / "ours")
    assert greedy(ours, BATCH, max_target_tokens=8) == wanted
    (tmp_path / "hf" / "b.safetensors").unlink()
    with pytest.raises(DataError, match=r"no b\.safetensors, which model\.safetensors\.index\.json names"):
        hugging_face.imported(tmp_path / "hf", tmp_path / "again")


class Program:
    """What a file of weights must not run."""

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return exec, ("raise SystemExit('it ran')",)


def test_programs_in_files_of_torch_do_not_run(tmp_path: Path) -> None:
    torch.save({"weight": Program()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"pytorch_model\.bin: cannot read the weights"):
        open_weights([tmp_path / "pytorch_model.bin"])


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_files_of_nonsense(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"nonsense")
    with pytest.raises(DataError, match="cannot read the weights"):
        open_weights([tmp_path / name])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"lm_head.bias": torch.zeros(23)}, "hold lm_head.bias, which this model has no place for"),
        ({"model.encoder.layers.0.fc1.weight": torch.zeros(3, 16)}, "feed_forward.expand.weight is"),
        ({"model.shared.weight": torch.zeros(22, 16)}, "model.shared.weight is"),
        ({"model.encoder.layers.0.fc1.weight": None}, "no model.encoder.layers.0.fc1.weight"),
        ({"model.encoder.layers.0.fc1.weight": torch.zeros(20, 16, dtype=torch.int8)}, "is stored as I8"),
        ({"model.encoder.layers.0.self_attn.k_proj.weight": torch.zeros(16, 15)}, "which does not fit below model"),
        ({"model.encoder.layers.0.self_attn.k_proj.bias": torch.zeros(())}, "which does not fit below model"),
        ({"final_logits_bias": torch.zeros(1, 22)}, "final_logits_bias is [1, 22], not [1, 23]"),
    ],
)
def test_tensors_that_do_not_fit(tmp_path: Path, change: dict[str, torch.Tensor | None], named: str) -> None:
    saved(tmp_path / "hf", tie_word_embeddings=True)
    tensors = load_file(tmp_path / "hf" / "model.safetensors") | change
    save_file({name: t for name, t in tensors.items() if t is not None}, tmp_path / "hf" / "model.safetensors")
    with pytest.raises(DragomanError) as caught:
        hugging_face.imported(tmp_path / "hf", tmp_path / "ours")
    assert named in str(caught.value)
    assert not (tmp_path / "ours").exists()
