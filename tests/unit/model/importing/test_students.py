"""Models of Marian against its network in NumPy: students with a recurrence, as .npz and as Firefox has them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from dragoman.bundle import SHORTLIST
from dragoman.cli import main
from dragoman.shortlist import Shortlist
from model.checkpoint import load_checkpoint
from model.decoding import greedy
from model.importing.bart_like import BANNED
from model.importing.family import Wanted
from model.importing.marian_bin import MarianBin
from model.importing.run import import_folder
from model.transformer import Transformer
from tests import marian_bin
from tests.hugging_face_files import sentences
from tests.marian_bin import Files
from tests.peers.student import EOS, UNKNOWN, Student

# The eight configurations that are published, in all that is structure: layers, and one vocabulary or two.
STRUCTURES: dict[str, dict[str, Any]] = {
    "tiny": {"enc_depth": 6, "dec_depth": 2},
    "base-memory": {"enc_depth": 6, "dec_depth": 4},
    "base-memory, two vocabularies": {"enc_depth": 6, "dec_depth": 4, "apart": True},
    "base": {"enc_depth": 6, "dec_depth": 2, "transformer_heads": 4},
    "base, two vocabularies": {"enc_depth": 6, "dec_depth": 2, "transformer_heads": 4, "apart": True},
}


def as_npz(files: Files, folder: Path) -> Path:
    """The same model in fp32, as the training writes it."""
    folder.mkdir()
    names = sorted(file.name for file in files.folder.glob("*vocab.*"))
    for name in names:
        (folder / name).write_bytes((files.folder / name).read_bytes())
    said = np.frombuffer(yaml.safe_dump(files.settings).encode() + b"\0", np.int8)
    np.savez(folder / "model.npz", **{marian_bin.SETTINGS: said}, **files.weights)
    (folder / "decoder.yml").write_text(yaml.safe_dump({"models": ["model.npz"], "vocabs": [names[0], names[-1]]}))
    return folder


@torch.inference_mode()
def logits_of(model: Transformer, source: list[int], target: list[int]) -> torch.Tensor:
    started = torch.tensor([[model.config.start_id, *target[:-1]]])
    return model(torch.tensor([source]), torch.tensor([len(source)]), started)[0]


def expected_logits(student: Student, source: list[int], target: list[int]) -> torch.Tensor:
    memory, cells = student.encode(source), student.new_cells()
    rows = student.weights[student.target]
    inputs = [np.zeros_like(rows[:1]), *(rows[id_][None] for id_ in target[:-1])]
    steps = [student.step(student.embed(row, at), memory, cells) for at, row in enumerate(inputs)]
    return torch.from_numpy(np.stack(steps))


def check(model: Transformer, student: Student, files: Files) -> None:
    """Logits of a translation that somebody else made, and what is decoded."""
    english, german = sentences()
    for text, translation in zip(english[:6], german[:6], strict=True):
        source, target = [*files.source.encode(text), EOS], [*files.target.encode(translation), EOS]
        expected = expected_logits(student, source, target)
        actual = logits_of(model, source, target)
        allowed = [id_ for id_ in range(expected.shape[1]) if id_ != UNKNOWN]
        torch.testing.assert_close(actual[:, allowed], expected[:, allowed], atol=1e-4, rtol=1e-4)
        assert bool((actual[:, [UNKNOWN, model.config.start_id]] < BANNED / 2).all())
        assert greedy(model, [source], max_target_tokens=9) == [student.translate(source, 9)]


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_student_computes_what_marian_does(structure: str, tmp_path: Path) -> None:
    files = marian_bin.write_folder(tmp_path / "files", **STRUCTURES[structure])
    import_folder(as_npz(files, tmp_path / "npz"), tmp_path / "out", Wanted(("en",), ("de",)))
    model, _ = load_checkpoint(tmp_path / "out")
    assert model.config.decoder_cell == "ssru"
    assert model.config.share_embeddings is not STRUCTURES[structure].get("apart", False)
    check(model, Student(files.weights, files.settings), files)


@pytest.mark.parametrize("apart", [False, True])
def test_a_model_with_self_attention_computes_what_marian_does(apart: bool, tmp_path: Path) -> None:
    """CTranslate2 and Hugging Face give such a model other positions."""
    files = marian_bin.write_folder(tmp_path / "files", apart=apart, transformer_decoder_autoreg="self-attention")
    import_folder(as_npz(files, tmp_path / "npz"), tmp_path / "out", Wanted(("en",), ("de",)))
    model, _ = load_checkpoint(tmp_path / "out")
    assert model.config.decoder_cell == "attention"
    check(model, Student(files.weights, files.settings), files)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_what_is_in_bytes_computes_what_they_stand_for(structure: str, tmp_path: Path) -> None:
    files = marian_bin.write_folder(tmp_path / "files", **STRUCTURES[structure])
    import_folder(files.folder, tmp_path / "out")
    content = MarianBin(next(files.folder.glob("model.*.bin")))
    weights = {name: content.read(name) for name in files.weights}
    model, _ = load_checkpoint(tmp_path / "out")
    check(model, Student(weights, files.settings), files)


@pytest.mark.parametrize(
    ("pair", "codes"),
    [("ende", ("en", "de")), ("zhen", ("zh", "en")), ("enzh_hant", ("en", "zh-Hant"))],
)
def test_languages_are_those_of_the_files_names(pair: str, codes: tuple[str, str], tmp_path: Path) -> None:
    files = marian_bin.write_folder(tmp_path / "files", pair=pair)
    languages = import_folder(files.folder, tmp_path / "out").languages
    assert (*languages.sources, *languages.targets) == codes


def test_languages_may_be_given(tmp_path: Path) -> None:
    files = marian_bin.write_folder(tmp_path / "files", pair="student")
    languages = import_folder(files.folder, tmp_path / "out", Wanted(("en",), ("de",))).languages
    assert (languages.sources, languages.targets) == (("en",), ("de",))


@pytest.mark.parametrize("apart", [False, True])
def test_ids_are_those_of_the_pieces(apart: bool, tmp_path: Path) -> None:
    """Characters without a piece are bytes, and come out again."""
    files = marian_bin.write_folder(tmp_path / "files", apart=apart)
    import_folder(files.folder, tmp_path / "out")
    _, tokenizer = load_checkpoint(tmp_path / "out")
    for text in [*sentences()[0], "Жизнь 日本 2024", "a </s> b <unk>"]:
        assert tokenizer.encode(text) == files.source.encode(text)
    for text in [*sentences()[1], "Жизнь 日本 2024"]:
        assert tokenizer.decode(files.target.encode(text)) == text
        assert tokenizer.encode_target(text) == files.target.encode(text)


def test_a_shortlist_goes_into_the_checkpoint(tmp_path: Path) -> None:
    files = marian_bin.write_folder(tmp_path / "files", with_shortlist=True)
    import_folder(files.folder, tmp_path / "out")
    content = (tmp_path / "out" / SHORTLIST).read_bytes()
    assert content == (files.folder / "lex.50.50.ende.s2t.bin").read_bytes()
    found = Shortlist(content, tmp_path)
    assert found.source_pieces == len(files.source)
    without = marian_bin.write_folder(tmp_path / "without")
    import_folder(without.folder, tmp_path / "out")
    assert not (tmp_path / "out" / SHORTLIST).exists()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-5000])


MODEL = "model.ende.intgemm.alphas.bin"
FOLDERS: dict[str, Callable[[Path], object]] = {
    "no vocab.*.spm": lambda folder: (folder / "vocab.ende.spm").unlink(),
    "no srcvocab.*.spm": lambda folder: (folder / "vocab.ende.spm").rename(folder / "trgvocab.ende.spm"),
    "2 files model.*.bin: model.deen.bin, model.ende": lambda folder: (folder / "model.deen.bin").write_bytes(b""),
    "unpack them": lambda folder: (folder / MODEL).rename(folder / f"{MODEL}.gz"),
    "does not say its languages": lambda folder: (folder / MODEL).rename(folder / "model.intgemm.bin"),
    "and should go on to byte": lambda folder: cut(folder / MODEL),
    "is no SentencePiece model, or damaged": lambda folder: (folder / "vocab.ende.spm").write_bytes(b"x"),
    "4 bytes are too few": lambda folder: (folder / "lex.s2t.bin").write_bytes(b"lexi"),
    "the shortlist has 3 source pieces": lambda folder: (folder / "lex.s2t.bin").write_bytes(
        marian_bin.shortlist([[1], [2], [3]])
    ),
}


@pytest.mark.parametrize("said", FOLDERS)
def test_refuses_a_folder_in_one_line(said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = marian_bin.write_folder(tmp_path / "files")
    FOLDERS[said](files.folder)
    refuses(files.folder, said, capsys)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dec_cell": "gru"}, "dec-cell is 'gru'; only 'ssru' is supported"),
        ({"layer_normalization": True}, "layer-normalization is True; only False is supported"),
        ({"transformer_decoder_autoreg": "average-attention"}, "only 'self-attention' or 'rnn' is supported"),
        ({"transformer_postprocess": "da"}, "are '', 'da', ''; supported are '', 'dan', ''"),
        ({"transformer_rnn_projection": True}, "transformer-rnn-projection is True"),
        ({"transformer_ffn_depth": 3}, "transformer-ffn-depth is 3"),
        ({"transformer_train_position_embeddings": True}, "transformer-train-position-embeddings is True"),
        ({"transformer_no_projection": True}, "transformer-no-projection is True"),
        ({"transformer_tied_layers": [1, 1]}, "transformer-tied-layers is [1, 1]"),
        ({"output_omit_bias": True}, "output-omit-bias is True"),
        ({"ulr": True}, "ulr is True"),
        ({"type": "amun"}, "type is 'amun'"),
        ({"dec_depth": 1}, "the weights hold model.decoder.layers.1."),
    ],
)
def test_refuses_any_other_network_by_name(
    changed: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = marian_bin.write_folder(tmp_path / "files", dec_depth=2)
    factors = dict.fromkeys(filter(marian_bin.is_quantized, files.weights), 20.0)
    settings = files.settings | {name.replace("_", "-"): value for name, value in changed.items()}
    marian_bin.write(files.folder / MODEL, files.weights, settings, factors)
    refuses(files.folder, said, capsys)


@pytest.mark.parametrize("name", ["decoder_l1_rnn_W", "decoder_l1_rnn_bf", "decoder_l1_rnn_ffn_ln_bias", "Wemb"])
def test_names_a_weight_that_is_missing(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = marian_bin.write_folder(tmp_path / "files")
    factors = dict.fromkeys(filter(marian_bin.is_quantized, files.weights), 20.0)
    del files.weights[name]
    marian_bin.write(files.folder / MODEL, files.weights, files.settings, factors)
    refuses(files.folder, "the weights have no", capsys)


def refuses(folder: Path, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder.parent / "out"
    assert main(["import", str(folder), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not out.exists()
