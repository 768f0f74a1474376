"""Imported models in the engine: several target languages in one batch, and each id as Hugging Face has it."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from dragoman.bundle import Bundle
from dragoman.framing import Frame
from export.write import Target, manifest_of, write_bundle
from model.checkpoint import load_checkpoint
from model.importing.run import import_folder
from model.layout import languages
from service.decode import Decode, FinishReason
from service.engine.offline import OfflineEngine
from tests import hugging_face, hugging_face_files

TOKENS = 16
TARGETS = {
    "marian": ["de", "fr", "es"],
    "nllb": ["de", "fr", "zh-Hant"],
    "mbart50": ["de", "ar", "pt"],
    "mbart25": ["de", "ar", "pt"],
}


def files(kind: str, folder: Path) -> Path:
    """Writes a folder of Hugging Face: a random model, and a tokenizer."""
    if kind == "marian":
        hugging_face_files.marian_files(folder, separate=True, marks=(">>deu<<", ">>fra<<", ">>spa<<"))
    elif kind == "nllb":
        hugging_face_files.fairseq_files(folder, kind, hugging_face_files.NLLB_LANGUAGES)
    else:
        name = "MBart50Tokenizer" if kind == "mbart50" else "MBartTokenizer"
        hugging_face_files.fairseq_files(folder, kind, hugging_face_files.MBART_50_LANGUAGES, tokenizer_class=name)
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


@pytest.mark.torch
@pytest.mark.parametrize("kind", list(TARGETS))
def test_every_id_is_that_of_generate(kind: str, tmp_path: Path) -> None:
    folder = files(kind, tmp_path / "opus-mt-en-mul")
    import_folder(folder, tmp_path / "checkpoint")
    model, tokenizer = load_checkpoint(tmp_path / "checkpoint")
    known = languages(tmp_path / "checkpoint")
    assert known is not None
    (tmp_path / "bundle").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        target = Target(kind, known, "fp32", 64, 64)
        manifest = manifest_of(model, tmp_path / "checkpoint", target)
        write_bundle(model, [], manifest, tmp_path / "checkpoint", tmp_path / "bundle")
    bundle = Bundle.open(tmp_path / "bundle")
    frames = [Frame.of(known, bundle.manifest, "en", code) for code in TARGETS[kind]]
    texts = hugging_face_files.sentences()[0][:5]
    cases = [(frame, frame.around(tokenizer.encode(text))) for text in texts for frame in frames]
    decodes = [Decode(ids, TOKENS, start_ids=frame.start_ids) for frame, ids in cases]
    OfflineEngine(bundle, slots=4, threads=1).decode(decodes)

    _, model_class = hugging_face.CLASSES[json.loads((folder / "config.json").read_text())["model_type"]]
    theirs = model_class.from_pretrained(folder).eval()
    start = bundle.manifest.start_id
    starts = [frame.start_ids or (start,) for frame, _ in cases]
    expected = hugging_face.translate(theirs, [ids for _, ids in cases], TOKENS, starts)
    for decode, ids in zip(decodes, expected, strict=True):
        # The engine ends what repeats itself, and has said the same up to there.
        whole = decode.finish_reason is not FinishReason.REPETITION
        assert decode.target_ids == ids[: None if whole else len(decode.target_ids)]
    assert len({tuple(decode.target_ids) for decode in decodes}) > len(texts)
