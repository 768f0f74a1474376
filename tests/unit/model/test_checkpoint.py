import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from dragoman.errors import BundleError
from model.checkpoint import average, load_checkpoint, load_weights, save_checkpoint, weights
from model.corpus import Corpus, read_corpus
from model.transformer import Transformer

Build = Callable[..., Transformer]
FIELDS = {"source_vocabulary_size": 400, "target_vocabulary_size": 400}
CORPUS = Corpus(["good morning", "yes\u2028no"], ["guten Morgen", "schön"], [])


@pytest.fixture
def checkpoint(build: Build, tokenizer_folder: Path, tmp_path: Path) -> Path:
    training = {"steps": 7, "note": "schön"}
    save_checkpoint(tmp_path / "checkpoint", build(**FIELDS), tokenizer_folder, training, CORPUS)
    return tmp_path / "checkpoint"


def test_round_trip(build: Build, checkpoint: Path) -> None:
    model, tokenizer = load_checkpoint(checkpoint)
    original = build(**FIELDS)
    assert model.config == original.config
    assert not model.training
    assert tokenizer.vocabulary_sizes == (400, 400)
    for (name, expected), actual in zip(original.named_parameters(), model.parameters(), strict=True):
        assert actual.dtype == torch.float32
        assert torch.equal(actual, expected.half().float()), name
    assert json.loads((checkpoint / "training.json").read_text()) == {"steps": 7, "note": "schön"}


def test_saved_again_it_is_the_same(checkpoint: Path, tokenizer_folder: Path, tmp_path: Path) -> None:
    model, _ = load_checkpoint(checkpoint)
    save_checkpoint(tmp_path / "again", model, tokenizer_folder, {}, CORPUS)
    for name in ("model.safetensors", "config.json", "tokenizer.model"):
        assert (tmp_path / "again" / name).read_bytes() == (checkpoint / name).read_bytes()


def test_no_encoding_of_a_locale_is_used(checkpoint: Path, tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from model.checkpoint import load_checkpoint, save_checkpoint
from model.corpus import Corpus
there, out = Path({str(checkpoint)!r}), Path({str(tmp_path / "again")!r})
save_checkpoint(out, load_checkpoint(there)[0], there, {{"note": "sch\\xf6n"}}, Corpus([], [], []))
"""
    ascii_locale = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    subprocess.run([sys.executable, "-c", code], env=ascii_locale, check=True)
    assert "schön" in (tmp_path / "again" / "training.json").read_text(encoding="utf-8")


def test_half_precision_and_tied_weights_once(checkpoint: Path) -> None:
    tensors = load_file(checkpoint / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    assert "source_embedding.weight" in tensors
    assert "output.weight" not in tensors
    assert "target_embedding.weight" not in tensors
    assert sorted(path.name for path in checkpoint.iterdir()) == [
        "config.json",
        "model.safetensors",
        "parity.tsv",
        "tokenizer.model",
        "training.json",
    ]


def test_pairs_for_the_parity_check(build: Build, checkpoint: Path, tokenizer_folder: Path, tmp_path: Path) -> None:
    assert read_corpus(checkpoint / "parity.tsv") == CORPUS
    many = Corpus(["a"] * 600, ["b"] * 600, [])
    save_checkpoint(tmp_path / "many", build(**FIELDS), tokenizer_folder, {}, many)
    assert len(read_corpus(tmp_path / "many" / "parity.tsv")) == 500


def test_all_faults_of_the_weights_in_one_message(checkpoint: Path) -> None:
    file = checkpoint / "model.safetensors"
    tensors = load_file(file)
    del tensors["encoder.0.self_attention.output.bias"], tensors["decoder_norm.weight"]
    tensors["encoder.9.weight"] = torch.zeros(1)
    tensors["encoder_norm.bias"] = torch.zeros(2, 3)
    save_file(tensors, file)
    with pytest.raises(BundleError) as caught:
        load_checkpoint(checkpoint)
    assert str(caught.value) == (
        f"{file}: weights do not fit the configuration: encoder_norm.bias is [2, 3], not [16]; "
        "missing decoder_norm.weight; missing encoder.0.self_attention.output.bias; unknown encoder.9.weight"
    )


def test_misfit_leaves_the_model_as_it_was(build: Build) -> None:
    model = build()
    before = {name: tensor.clone() for name, tensor in weights(model).items()}
    with pytest.raises(BundleError):
        load_weights(model, weights(build(1, d_ff=48)), Path("origin"))
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(model).items())


def damage(checkpoint: Path, name: str, content: bytes | None) -> None:
    if content is None:
        (checkpoint / name).unlink()
    else:
        (checkpoint / name).write_bytes(content)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.model"])
@pytest.mark.parametrize("content", [None, b"", b"nonsense", b"\xff\xfe{}"])
def test_missing_or_unreadable_file(checkpoint: Path, name: str, content: bytes | None) -> None:
    damage(checkpoint, name, content)
    with pytest.raises(BundleError, match="checkpoint"):
        load_checkpoint(checkpoint)


def test_configuration_with_an_unknown_field(checkpoint: Path) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    damage(checkpoint, "config.json", json.dumps(config | {"moe": 8}).encode())
    with pytest.raises(BundleError, match=r"config\.json: moe: is no known field"):
        load_checkpoint(checkpoint)


def test_tokenizer_of_another_model(build: Build, tokenizer_folder: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "checkpoint", build(), tokenizer_folder, {}, CORPUS)
    with pytest.raises(BundleError, match=r"tokenizer has \(400, 400\) pieces"):
        load_checkpoint(tmp_path / "checkpoint")


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="not a readable checkpoint"):
        load_checkpoint(tmp_path / "missing")


def test_average() -> None:
    tensors = [
        {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor(3.0)},
        {"a": torch.tensor([3.0, 4.0]), "b": torch.tensor(5.0)},
    ]
    mean = average(tensors)
    assert mean["a"].tolist() == [2.0, 3.0]
    assert mean["b"].item() == 4.0
    assert mean["a"].dtype == torch.float32
    assert tensors[0]["a"].tolist() == [1.0, 2.0]


def test_average_of_one_is_itself(build: Build) -> None:
    own = weights(build())
    assert all(torch.equal(tensor, own[name]) for name, tensor in average([own]).items())


def test_average_does_not_lose_small_differences() -> None:
    mean = average([{"a": torch.tensor(1.0)}] * 999 + [{"a": torch.tensor(1.0 + 2**-20)}])
    assert mean["a"].item() == pytest.approx(1.0 + 2**-20 / 1000, abs=2**-24)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("d_model", 10**6, "d_model: must be less than or equal to 65536, not 1000000"),
        ("max_positions", 10**12, "max_positions: must be less than or equal to 65536, not 1000000000000"),
        ("source_vocabulary_size", 10**12, "source_vocabulary_size: must be less than or equal to 16777216, not"),
        ("encoder_layers", 10**9, "encoder_layers: must be less than or equal to 1000, not 1000000000"),
        ("norm_epsilon", 0.0, "norm_epsilon: must be greater than or equal to 0.000000000001, not 0.0"),
        ("eos_id", 10**9, "eos_id 1000000000 must be below target_vocabulary_size 400"),
    ],
)
def test_values_out_of_all_proportion_are_named_with_their_limit(
    checkpoint: Path, field: str, value: float, told: str
) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | {field: value}))
    with pytest.raises(BundleError) as caught:
        load_checkpoint(checkpoint)
    assert caught.value.message.startswith(f"{checkpoint / 'config.json'}: ")
    assert told in caught.value.message
    assert "\n" not in caught.value.message


def test_sizes_that_the_weights_do_not_have_are_told_before_memory_is_taken(checkpoint: Path) -> None:
    """The model of this configuration has 70 TB."""
    config = json.loads((checkpoint / "config.json").read_text())
    large = {"d_model": 2**16, "d_ff": 2**20, "encoder_layers": 100}
    (checkpoint / "config.json").write_text(json.dumps(config | large))
    with pytest.raises(BundleError, match=r"weights do not fit the configuration: .*; and [0-9]+ more$") as caught:
        load_checkpoint(checkpoint)
    assert len(caught.value.message) < 5_000
