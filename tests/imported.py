"""Bundles of imported models, made once: random weights of Hugging Face's own classes, with a tokenizer."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.bundle import Bundle
from export.parameters import open_checkpoint
from export.write import Target, manifest_of, write_bundle
from model.importing.run import import_folder
from model.layout import languages
from tests import hugging_face, hugging_face_files
from tests.made_once import made_once

MAX_TOKENS = 64


class Imported(NamedTuple):
    """A model in three forms.

    Attributes:
        source: folder of Hugging Face.
        checkpoint: what was made of it.
        bundle: what was made of that, in fp32.
    """

    source: Path
    checkpoint: Path
    bundle: Path


def imported(kind: str) -> Imported:
    """Give a model that is imported, and that nobody has compared with anything."""

    def make(folder: Path) -> None:
        source, checkpoint = files(kind, folder / "opus-mt-en-mul"), folder / "checkpoint"
        import_folder(source, checkpoint)
        parameters, _ = open_checkpoint(checkpoint)
        known = languages(checkpoint)
        assert known is not None
        manifest = manifest_of(parameters, checkpoint, Target(kind, known, "fp32", MAX_TOKENS, MAX_TOKENS - 2))
        (folder / "bundle").mkdir()
        write_bundle(parameters, {}, manifest, checkpoint, folder / "bundle")

    folder = made_once(f"imported {kind}", make)
    Bundle.open(folder / "bundle")
    return Imported(folder / "opus-mt-en-mul", folder / "checkpoint", folder / "bundle")


def files(kind: str, folder: Path) -> Path:
    """Writes a folder of Hugging Face: a random model, and a tokenizer."""
    if kind == "marian":
        hugging_face_files.marian_files(folder, separate=True, marks=(">>deu<<", ">>fra<<", ">>spa<<"))
    elif kind == "nllb":
        hugging_face_files.fairseq_files(folder, kind, hugging_face_files.NLLB_LANGUAGES)
    else:
        codes = hugging_face_files.MBART_50_LANGUAGES
        hugging_face_files.fairseq_files(folder, kind, codes, tokenizer_class="MBartTokenizer")
    given = json.loads((folder / "config.json").read_text())
    settings: dict[str, Any] = {
        "d_model": 32,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 40,
        "max_position_embeddings": 64,
        "tie_word_embeddings": False,
    }
    if kind != "marian":
        settings |= {"pad_token_id": 1, "eos_token_id": 2, "bos_token_id": 0, "decoder_start_token_id": 2}
    settings = {key: value for key, value in given.items() if key not in ("model_type", "architectures")} | settings
    model = hugging_face.random_model(given["model_type"], 11, **settings)
    hugging_face.save(model, folder, bad_words_ids=[[model.config.pad_token_id]])
    return folder


def pair() -> Path:
    """Give a folder of OPUS-MT for one language pair, which only its name says."""

    def make(folder: Path) -> None:
        source = hugging_face_files.marian_files(folder / "opus-mt-en-de", d_model=32)
        given = json.loads((source / "config.json").read_text())
        settings = {key: value for key, value in given.items() if key not in ("model_type", "architectures")}
        model = hugging_face.random_model("marian", 2, **settings)
        hugging_face.save(model, source, bad_words_ids=[[given["pad_token_id"]]], no_repeat_ngram_size=3)

    return made_once("opus-mt-en-de", make) / "opus-mt-en-de"
