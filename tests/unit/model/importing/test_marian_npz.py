"""Models in Marian's own format, against CTranslate2, whose converter reads the same files."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
import yaml
from ctranslate2.converters import MarianConverter
from safetensors.torch import load_file
from sentencepiece import SentencePieceProcessor

from dragoman.cli import main
from dragoman.framing import Frame
from dragoman.tokenizer import SOURCE_VOCABULARY, TARGET_VOCABULARY, VOCABULARY
from model.checkpoint import load_checkpoint, load_weights, weights
from model.decoding import greedy
from model.importing.family import Wanted
from model.importing.run import import_folder
from model.layout import WEIGHTS
from model.transformer import Transformer
from tests import hugging_face_files, marian_npz
from tests.hugging_face_files import sentences

TOKENS = 12
EN_DE = Wanted(("en",), ("de",))
ENGLISH_TO_GERMAN = ["--source-language", "en", "--target-language", "de"]
CASES: dict[str, dict[str, Any]] = {
    "as OPUS-MT": {},
    "normalized before": marian_npz.PRE,
    "relu": {"transformer_ffn_activation": "relu"},
    "gelu": {"transformer_ffn_activation": "gelu"},
    "embeddings normalized": {"transformer_postprocess_emb": "nd"},
    "separate vocabularies": {"separate": True},
    "untied": {"separate": True, "tied": False},
    "untied, one vocabulary": {"tied": False},
    "pre, gelu, untied": {**marian_npz.PRE, "transformer_ffn_activation": "gelu", "tied": False},
}


def in_ctranslate2(folder: Path, out: Path, sources: list[list[str]]) -> list[list[str]]:
    """Decodes pieces greedily with CTranslate2."""
    names = yaml.safe_load((folder / "decoder.yml").read_text())["vocabs"]
    MarianConverter(str(folder / "model.npz"), [str(folder / name) for name in names]).convert(str(out))
    translator = ctranslate2.Translator(str(out), compute_type="float32", intra_threads=1)
    results = translator.translate_batch(sources, beam_size=1, max_decoding_length=TOKENS, min_decoding_length=0)
    return [result.hypotheses[0] for result in results]


@pytest.mark.parametrize("case", CASES)
def test_pieces_are_those_of_ctranslate2(case: str, tmp_path: Path) -> None:
    folder, out = marian_npz.write(tmp_path / "opus", **CASES[case]), tmp_path / "out"
    known = import_folder(folder, out, EN_DE).languages
    model, tokenizer = load_checkpoint(out)
    model = as_ctranslate2(model, folder / "model.npz")
    frame = Frame.of(known, model.config)
    sources = [frame.around(tokenizer.encode(text)) for text in sentences()[0][:40]]
    actual = greedy(model, sources, max_target_tokens=TOKENS)
    expected = in_ctranslate2(folder, tmp_path / "ct2", [pieces(out, SOURCE_VOCABULARY, ids)[:-1] for ids in sources])
    assert [pieces(out, TARGET_VOCABULARY, ids) for ids in actual] == expected
    assert len(set(map(tuple, expected))) >= 10
    # The same once more, as CTranslate2 has written it.
    for name in ("source.spm", "target.spm"):
        shutil.copy(folder / name, tmp_path / "ct2")
    import_folder(tmp_path / "ct2", tmp_path / "again", EN_DE)
    again, tokenizer = load_checkpoint(tmp_path / "again")
    assert [[*tokenizer.encode(text), again.config.eos_id] for text in sentences()[0][:40]] == sources
    assert greedy(again, sources, max_target_tokens=TOKENS) == actual


def as_ctranslate2(model: Transformer, file: Path) -> Transformer:
    """Gives the model as CTranslate2 computes it: with the positions of Hugging Face, and <unk> may be chosen."""
    other = Transformer(model.config.model_copy(update={"positions": "sinusoidal_paper_halves", "norm_epsilon": 1e-5}))
    load_weights(other, weights(model), file)
    unknown = marian_npz.SPECIAL.index("<unk>")
    with torch.no_grad():
        other.output.bias[unknown] = float(np.load(file)["decoder_ff_logit_out_b"][0, unknown])
    return other.eval()


def pieces(checkpoint: Path, vocabulary: str, ids: list[int]) -> list[str]:
    file = checkpoint / vocabulary
    content = json.loads((file if file.is_file() else checkpoint / VOCABULARY).read_text(encoding="utf-8"))
    return [content[id_] for id_ in ids]


def test_vocabularies_may_be_models_of_sentencepiece(tmp_path: Path) -> None:
    """As newer models have them: the model's own ids are those of the weights."""
    folder = marian_npz.write(tmp_path / "opus")
    content = hugging_face_files.train(
        [*sentences()[0], *sentences()[1]], bos_id=-1, eos_id=0, unk_id=1, vocab_size=len_of(folder / "vocab.yml")
    )
    count = len(hugging_face_files.pieces_of(SentencePieceProcessor(model_proto=content)))
    (folder / "vocab.spm").write_bytes(content)
    for name in ("source.spm", "target.spm", "vocab.yml"):
        (folder / name).unlink()
    set_up(folder, vocabs=["vocab.spm", "vocab.spm"])
    marian_npz.resize(folder / "model.npz", count)
    import_folder(folder, tmp_path / "out", EN_DE)
    model, tokenizer = load_checkpoint(tmp_path / "out")
    assert model.config.target_vocabulary_size == count + 1
    processor = SentencePieceProcessor(model_proto=content)
    for text in sentences()[0]:
        ids = processor.encode(text)
        assert tokenizer.encode(text) == ids
        assert processor.unk_id() in ids or tokenizer.decode(ids) == text


def len_of(vocabulary: Path) -> int:
    return len(vocabulary.read_text(encoding="utf-8").splitlines())


def test_marks_of_languages_are_found(tmp_path: Path) -> None:
    folder = marian_npz.write(tmp_path / "opus", marks=(">>deu<<", ">>fra<<"))
    known = import_folder(folder, tmp_path / "out", Wanted(("en",))).languages
    assert set(known.targets) == {"de", "fr"}
    assert known.marks["de"].target_tag == (len(marian_npz.SPECIAL),)


def test_weights_in_half_precision_stay_so(tmp_path: Path) -> None:
    folder = marian_npz.write(tmp_path / "opus")
    halve(folder / "model.npz")
    import_folder(folder, tmp_path / "out", EN_DE)
    assert {str(tensor.dtype) for name, tensor in load_file(tmp_path / "out" / WEIGHTS).items()} == {
        "torch.float16",
        "torch.float32",  # the bias with the token that is never chosen
    }


def test_the_command_says_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = marian_npz.write(tmp_path / "opus")
    assert main(["import", str(folder), "--out", str(tmp_path / "out"), *ENGLISH_TO_GERMAN]) == 0
    out = capsys.readouterr().out
    assert "Marian: " in out
    assert "languages: en to de" in out


def set_up(folder: Path, **settings: Any) -> None:
    file = folder / "decoder.yml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | settings))


def change(folder: Path, **settings: Any) -> None:
    """Changes what the weights say of the model; low lines stand for hyphens."""
    weights = dict(np.load(folder / "model.npz"))
    said = yaml.safe_load(weights["special:model.yml"].tobytes().rstrip(b"\0"))
    said |= {key.replace("_", "-"): value for key, value in settings.items()}
    weights["special:model.yml"] = np.frombuffer(yaml.safe_dump(said).encode() + b"\0", np.int8)
    np.savez(folder / "model.npz", **weights)


def halve(file: Path) -> None:
    weights = {name: array.astype(np.float16) if array.ndim > 1 else array for name, array in np.load(file).items()}
    np.savez(file, **weights)


def without(file: Path, name: str, **instead: Any) -> None:
    weights = dict(np.load(file))
    del weights[name]
    np.savez(file, **weights, **instead)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: change(folder, type="s2s"), "type is 's2s'; only 'transformer' is supported"),
        (lambda folder: change(folder, transformer_decoder_autoreg="average-attention"), "-autoreg is 'average-att"),
        (lambda folder: change(folder, transformer_magic=7), "transformer-magic is unknown here"),
        (lambda folder: change(folder, transformer_ffn_activation="tanh"), "transformer-ffn-activation is 'tanh'"),
        (lambda folder: change(folder, transformer_ffn_activation=["relu"]), "transformer-ffn-activation is ['relu']"),
        (lambda folder: change(folder, transformer_postprocess="da"), "supported are '', 'dan', '' or 'n', 'da', 'n'"),
        (lambda folder: change(folder, transformer_postprocess_emb="x"), "transformer-postprocess-emb is 'x'"),
        (lambda folder: change(folder, transformer_heads=5), "5"),
        (lambda folder: change(folder, dim_emb="wide"), "d_model"),
        (lambda folder: (folder / "decoder.yml").write_text("- 1"), "decoder.yml: must hold a YAML mapping"),
        (lambda folder: (folder / "decoder.yml").write_text("'"), "decoder.yml: no YAML"),
        (lambda folder: set_up(folder, models=["a.npz", "b.npz"]), "names 2 models; an ensemble is not supported"),
        (lambda folder: set_up(folder, models=["other.npz"]), "no other.npz, which decoder.yml names"),
        (lambda folder: set_up(folder, vocabs=["vocab.yml"]), "vocabs must name two files, names 1"),
        (lambda folder: set_up(folder, vocabs=["a.yml", "a.yml"]), "no a.yml, which decoder.yml names"),
        (lambda folder: (folder / "target.spm").unlink(), "no target.spm"),
        (lambda folder: (folder / "model.npz").write_bytes(b"PK"), "cannot read a model of Marian"),
        (lambda folder: (folder / "model.npz").write_bytes(b""), "cannot read a model of Marian"),
        (lambda folder: without(folder / "model.npz", "special:model.yml"), "cannot read a model of Marian"),
        (lambda folder: without(folder / "model.npz", "Wemb"), "the weights have no"),
        (lambda folder: without(folder / "model.npz", "encoder_l1_ffn_W1"), "fc1"),
        (lambda folder: without(folder / "model.npz", "Wemb", Wpos=np.ones((4, 4), np.float32)), "the weights have no"),
        (lambda folder: write_ids(folder, "1.5"), "vocab.yml"),
        (lambda folder: damage(folder / "model.npz"), "model.npz: cannot read Wemb: Bad CRC-32"),
    ],
)
def test_refuses_in_one_line(change, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = marian_npz.write(tmp_path / "opus")
    change(folder)
    assert main(["import", str(folder), "--out", str(tmp_path / "out"), *ENGLISH_TO_GERMAN]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def damage(file: Path) -> None:
    """Changes one bit of the embeddings."""
    with zipfile.ZipFile(file) as archive:
        place = archive.getinfo("Wemb.npy").header_offset + 1_000
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)


def write_ids(folder: Path, id_: str) -> None:
    with (folder / "vocab.yml").open("a", encoding="utf-8") as file:
        file.write(f'"more": {id_}\n')


def test_a_weight_that_nothing_reads_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = marian_npz.write(tmp_path / "opus")
    weights = dict(np.load(folder / "model.npz"))
    np.savez(folder / "model.npz", **weights, encoder_l1_gate_W=np.ones((4, 4), np.float32))
    assert main(["import", str(folder), "--out", str(tmp_path / "out"), *ENGLISH_TO_GERMAN]) == 2
    assert "encoder_l1_gate_W" in capsys.readouterr().err
