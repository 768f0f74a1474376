"""What cannot be had is refused in a line that names it, before any weight is read: here there are none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DataError
from model.config import TransformerConfig
from model.importing.families import family_of
from model.importing.family import Wanted
from model.importing.run import import_folder
from model.importing.source import Source

Folder = Callable[..., Path]


def change(folder: Path, name: str = "config.json", **fields: Any) -> None:
    file = folder / name
    content = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(content | fields))


@pytest.fixture
def folder(marian_folder: Folder, tmp_path: Path) -> Path:
    """An OPUS-MT folder in which nothing but the weights is missing."""
    return marian_folder(tmp_path / "opus-mt-en-de")


def refusal(folder: Path, **wanted: tuple[str, ...]) -> str:
    with pytest.raises(DataError) as caught:
        import_folder(folder, folder.parent / "out", Wanted(**wanted))
    assert not (folder.parent / "out").exists()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_without_a_change_only_weights_are_missing(folder: Path) -> None:
    assert "no model.safetensors, and no pytorch_model.bin" in refusal(folder)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2' cannot be imported; supported are marian"),
        ({"model_type": "nllb-moe"}, "mixtures of experts"),
        ({"model_type": "fsmt"}, "Moses and BPE"),
        ({"model_type": None}, "model_type None"),
        ({"architectures": ["MarianForCausalLM"]}, "architectures is MarianForCausalLM"),
        ({"activation_function": "mish"}, "activation_function is 'mish'; supported are relu"),
        ({"activation_function": ["relu"]}, "activation_function is ['relu']; supported are relu"),
        ({"normalize_before": True}, "normalize_before is True"),
        ({"static_position_embeddings": False}, "static_position_embeddings is False"),
        ({"quantization_config": {"bits": 4}}, "quantization_config is unknown here"),
        ({"rope_theta": 1.0}, "rope_theta is unknown here"),
        ({"eos_token_id": [0, 1]}, "eos_token_id must be one id"),
        ({"pad_token_id": "<pad>"}, "pad_token_id must be a whole number, is '<pad>'"),
        ({"eos_token_id": 1}, "</s> is 0 in vocab.json, eos_token_id 1"),
        ({"vocab_size": 20, "decoder_vocab_size": 20}, "and the model 20 pieces"),
        ({"decoder_vocab_size": 20}, "differ, but there is one vocabulary"),
        ({"vocab_size": "16"}, "vocab_size must be a whole number"),
    ],
)
def test_settings(folder: Path, fields: dict[str, Any], named: str) -> None:
    change(folder, **fields)
    assert named in refusal(folder)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"bad_words_ids": [5]}, "bad_words_ids must be a list of lists of ids, is [5]"),
        ({"bad_words_ids": 5}, "bad_words_ids must be a list of lists of ids, is 5"),
        ({"suppress_tokens": 5}, "suppress_tokens must be a list of ids, is 5"),
        ({"suppress_tokens": [-1]}, "suppress_tokens must be a list of ids, is [-1]"),
    ],
)
def test_what_is_banned_are_ids(folder: Path, fields: dict[str, Any], named: str) -> None:
    change(folder, "generation_config.json", **fields)
    assert f"generation_config.json: {named}" in refusal(folder)


def test_a_tokenizer_that_adds_no_tokens(fairseq_folder: Folder, tmp_path: Path) -> None:
    folder = fairseq_folder(tmp_path / "m2m", "m2m100", ["__en__", "__de__"])
    change(folder, "tokenizer.json", added_tokens=None)
    change(folder, "tokenizer_config.json", added_tokens_decoder=None)
    assert "no model.safetensors" in refusal(folder)


@pytest.mark.parametrize(
    ("file", "fields"),
    [
        ("tokenizer.json", {"added_tokens": ["</s>"]}),
        ("tokenizer.json", {"added_tokens": [{"content": "</s>"}]}),
        ("tokenizer_config.json", {"added_tokens_decoder": ["</s>"]}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"two": {"content": "</s>"}}}),
        ("added_tokens.json", {"__en__": None}),
    ],
)
def test_added_tokens_without_ids(fairseq_folder: Folder, tmp_path: Path, file: str, fields: dict[str, Any]) -> None:
    folder = fairseq_folder(tmp_path / "m2m", "m2m100", ["__en__", "__de__"])
    change(folder, file, **fields)
    assert "one has no content or id" in refusal(folder)


@pytest.mark.parametrize("content", [None, {}, "model.safetensors"])
def test_an_index_that_names_no_files(folder: Path, content: Any) -> None:
    change(folder, "model.safetensors.index.json", weight_map=content)
    assert "model.safetensors.index.json: weight_map must name the file of each weight" in refusal(folder)


@pytest.mark.parametrize(
    "fields",
    [
        {"num_beams": 6},
        {"dropout": 0.5},
        {"normalize_before": False},
        {"prefix": None},
        {"_attn_implementation_autoset": True, "_commit_hash": "0a1b", "unsloth_fixed": True},
    ],
)
def test_settings_that_change_nothing(folder: Path, fields: dict[str, Any]) -> None:
    change(folder, **fields)
    assert "no model.safetensors" in refusal(folder)


@pytest.mark.parametrize("name", ["source.spm", "target.spm", "vocab.json", "config.json"])
def test_missing_files(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"no {name}" in refusal(folder)


def test_moses_and_bpe_are_named(folder: Path) -> None:
    (folder / "source.spm").rename(folder / "source.bpe")
    assert "need Moses and BPE" in refusal(folder)


@pytest.mark.parametrize("name", ["source.spm", "vocab.json", "config.json", "generation_config.json"])
def test_files_of_nonsense(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"nonsense")
    assert name in refusal(folder)


def test_no_folder(tmp_path: Path) -> None:
    assert "no such folder" in refusal(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("model.ende.intgemm.alphas.bin.gz", "unpack them"),
        ("opus.npz", "without decoder.yml"),
        ("checkpoint.pt", "fairseq"),
        ("weights.dat", "no model is known by its files: no config.json (Hugging Face), decoder.yml"),
    ],
)
def test_other_formats(tmp_path: Path, file: str, named: str) -> None:
    (tmp_path / "other" / file).parent.mkdir(parents=True)
    (tmp_path / "other" / file).write_bytes(b"")
    assert named in refusal(tmp_path / "other")


def test_pieces_that_fit_no_other(folder: Path) -> None:
    ids = json.loads((folder / "vocab.json").read_text())
    (folder / "vocab.json").write_text(json.dumps(ids | {"twice": 5}))
    assert "the id 5 is of two pieces" in refusal(folder)
    del ids["<unk>"]
    (folder / "vocab.json").write_text(json.dumps(ids))
    assert "no <unk>" in refusal(folder)


def test_byte_level_tokenizers(tmp_path: Path) -> None:
    (tmp_path / "bart").mkdir()
    change(tmp_path / "bart", model_type="bart", vocab_size=100)
    assert "splits texts into bytes" in refusal(tmp_path / "bart")
    change(tmp_path / "bart", model_type="gpt2")
    supported = refusal(tmp_path / "bart").partition("supported are ")[2].split(", ")
    assert {"mbart", "ctranslate2"} < {*supported}
    assert "bart" not in supported


def test_a_checkpoint_is_none_to_import(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text(
        TransformerConfig(source_vocabulary_size=300, target_vocabulary_size=300).model_dump_json()
    )
    assert refusal(folder) == f"{folder}: is a checkpoint already; dragoman export makes a bundle from it"


def test_languages_that_nothing_says(marian_folder: Folder, tmp_path: Path) -> None:
    folder = marian_folder(tmp_path / "mine")
    assert "give --target-language" in refusal(folder)
    assert "no mark such as >>deu<<" in refusal(folder, targets=("de", "fr"))
    assert "no model.safetensors" in refusal(folder, targets=("de",))
    change(folder, "tokenizer_config.json", source_lang="mul", target_lang="deu")
    assert "give --source-language" in refusal(folder)


def test_languages_that_are_not_there(marian_folder: Folder, tmp_path: Path) -> None:
    folder = marian_folder(tmp_path / "mine", marks=(">>deu<<", ">>fra<<", ">>xx_odd<<"))
    assert "no language 'es' in this model; there are de, fr" in refusal(folder, targets=("es",))
    assert "no language 'es'" in refusal(folder, languages=("es",))
    source = Source.open(folder)
    texts = family_of(source).texts(source, Wanted(languages=("en", "fra")))
    assert (texts.languages.sources, texts.languages.targets) == (("en",), ("fr",))
    assert texts.languages.of("fr").aliases == ("fra", ">>fra<<")
    assert list(texts.warnings) == ["left out, as no codes of languages, or twice the same: xx_odd"]


def test_start_at_the_padding_has_no_position(fairseq_folder: Folder, tmp_path: Path) -> None:
    folder = fairseq_folder(tmp_path / "m2m", "m2m100", ["__en__", "__de__"])
    change(folder, decoder_start_token_id=1)
    assert "decoder_start_token_id is pad_token_id" in refusal(folder)


def test_settings_of_decoding_that_are_not_applied(folder: Path) -> None:
    settings = {"no_repeat_ngram_size": 3, "repetition_penalty": 1.0, "num_beams": 4, "bad_words_ids": [[5], [3, 4]]}
    change(folder, "generation_config.json", **settings)
    source = Source.open(folder)
    warnings = family_of(source).check(source)
    assert list(warnings) == [
        "bad_words_ids: [3, 4] is not banned, only single ids are",
        "generation_config.json: no_repeat_ngram_size is 3, and is not applied",
    ]
