"""Models of CTranslate2, written by its own converter classes, against CTranslate2's own greedy decoding."""

import json
import shutil
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch

from bench.peers import convert
from bench.peers.checkpoint import Checkpoint
from dragoman.cli import main
from dragoman.errors import DataError
from dragoman.framing import Frame
from model.checkpoint import load_checkpoint, weights
from model.decoding import greedy
from model.importing.ct2_file import Ct2Weights
from model.importing.run import import_folder
from model.layout import languages
from model.transformer import Transformer
from tests import synthetic, synthetic_model

TOKENS = 12


@pytest.fixture(scope="module", params=["pre", "post"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A checkpoint of ours, and what CTranslate2's classes write of it, packed as a package of Argos."""
    checkpoint = synthetic_model.make_checkpoint(norm=request.param, activation="gelu", decoder_layers=1)
    package = tmp_path_factory.mktemp("argos") / "translate-en_de"
    package.mkdir()
    convert.converted(Checkpoint.open(checkpoint), package).rename(package / "model")
    set_up(package, add_source_eos=True)
    shutil.copyfile(checkpoint / "tokenizer.model", package / "sentencepiece.model")
    (package / "metadata.json").write_text('{"from_code": "en", "to_code": "de", "package_version": "1.9"}')
    return checkpoint, package


def set_up(package: Path, **settings: Any) -> None:
    file = package / "model" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def test_a_package_of_argos_is_the_model_that_it_was_made_of(made, tmp_path: Path) -> None:
    checkpoint, package = made
    imported = import_folder(package, tmp_path / "out")
    assert imported.family == "CTranslate2"
    assert (imported.languages.sources, imported.languages.targets) == (("en",), ("de",))
    before, (after, tokenizer) = load_checkpoint(checkpoint)[0], load_checkpoint(tmp_path / "out")
    ours = weights(after)
    for name, weight in weights(before).items():
        torch.testing.assert_close(ours[name], weight, rtol=0, atol=0)
    sources = [[*tokenizer.encode(text), after.config.eos_id] for text in synthetic.texts()]
    expected = greedy(before, sources, max_target_tokens=TOKENS)
    assert greedy(after, sources, max_target_tokens=TOKENS) == expected
    assert expected == in_ctranslate2(package, synthetic.texts(), after.config.start_id)


def in_ctranslate2(package: Path, texts: list[str], start_id: int) -> list[list[int]]:
    """Decodes greedily with CTranslate2, which takes and gives pieces."""
    pieces = convert.vocabulary(package / "sentencepiece.model")
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_file=str(package / "sentencepiece.model"))
    translator = ctranslate2.Translator(str(package / "model"), compute_type="float32", intra_threads=1)
    results = translator.translate_batch(
        [processor.encode(text, out_type=str) for text in texts],
        beam_size=1,
        max_decoding_length=TOKENS,
        min_decoding_length=0,
    )
    ids = {piece: id_ for id_, piece in enumerate(pieces)}
    return [[ids[piece] for piece in result.hypotheses[0]] for result in results]


def test_sources_end_only_where_the_model_expects_it(made, tmp_path: Path) -> None:
    _, package = made
    other = tmp_path / "package"
    shutil.copytree(package, other)
    set_up(other, add_source_eos=False, add_source_bos=True)
    import_folder(other, tmp_path / "out")
    model, tokenizer = load_checkpoint(tmp_path / "out")
    known = languages(tmp_path / "out")
    assert known is not None
    frame = Frame.of(known, model.config)
    assert frame.around([7, 8]) == [model.config.start_id, 7, 8]
    sources = [frame.around(tokenizer.encode(text)) for text in synthetic.texts()]
    expected = in_ctranslate2(other, synthetic.texts(), model.config.start_id)
    assert greedy(model, sources, max_target_tokens=TOKENS) == expected


def test_a_source_begins_with_an_id_of_its_own_vocabulary(made, tmp_path: Path) -> None:
    other = apart(made[1], tmp_path / "package", "<s>", "a")
    set_up(other, add_source_eos=False, add_source_bos=True)
    known = import_folder(other, tmp_path / "out").languages
    source = json.loads((other / "model" / "source_vocabulary.json").read_text())
    assert known.of("en").source_prefix == (source.index("<s>"),)
    assert json.loads((other / "model" / "target_vocabulary.json").read_text()).index("<s>") != source.index("<s>")


def test_a_source_that_ends_otherwise_than_its_target_is_refused(made, tmp_path: Path) -> None:
    other = apart(made[1], tmp_path / "package", "</s>", "a")
    with pytest.raises(DataError, match="</s> has other ids in the source and in the target"):
        import_folder(other, tmp_path / "out")


def apart(package: Path, folder: Path, *changed: str) -> Path:
    """Copies a package, with a vocabulary for each side, in one of which two pieces change places."""
    shutil.copytree(package, folder)
    file = folder / "model" / "shared_vocabulary.json"
    pieces = json.loads(file.read_text())
    file.rename(file.with_name("target_vocabulary.json"))
    one, other = map(pieces.index, changed)
    pieces[one], pieces[other] = pieces[other], pieces[one]
    file.with_name("source_vocabulary.json").write_text(json.dumps(pieces))
    return folder


@pytest.mark.parametrize("quantization", ["int8", "int16", "float16", "int8_float16"])
def test_weights_in_whole_numbers_are_read_as_what_they_stand_for(made, quantization: str, tmp_path: Path) -> None:
    checkpoint, package = made
    converted = tmp_path / "package" / "model"
    shutil.copytree(package, converted.parent)
    file = requantized(Checkpoint.open(checkpoint), converted, quantization)
    stored = Ct2Weights(file)
    whole = Ct2Weights(package / "model" / "model.bin")
    assert set(stored.names) == set(whole.names)
    coarse = 0
    for name in stored.names:
        exact, read = whole.read(name), stored.read(name).astype(np.float32)
        size = np.abs(exact)
        step = size.max(axis=-1, keepdims=True) / 127 if "int8" in quantization else size.max() / 1_000
        assert (np.abs(read - exact) <= step).all()
        coarse += not np.array_equal(read, exact)
    assert coarse
    import_folder(converted.parent, tmp_path / "out")
    model, _ = load_checkpoint(tmp_path / "out")
    assert isinstance(model, Transformer)


def requantized(checkpoint: Checkpoint, folder: Path, quantization: str | None, **decoder: Any) -> Path:
    """Writes a model anew, in another precision or with other settings of the decoder."""
    spec = convert._spec(checkpoint)  # noqa: SLF001 - what it saves is always fp32
    for name, value in decoder.items():
        setattr(spec.decoder, name, value)
    spec.validate()
    spec.optimize(quantization=quantization)
    shutil.rmtree(folder)
    folder.mkdir()
    spec.save(str(folder))
    return folder / "model.bin"


def test_heads_that_alignments_are_read_from_are_no_weights(made, tmp_path: Path) -> None:
    checkpoint, package = made
    shutil.copytree(package, tmp_path / "package")
    aligned = np.array([0, 1], np.int16)
    requantized(Checkpoint.open(checkpoint), tmp_path / "package" / "model", None, alignment_heads=aligned)
    set_up(tmp_path / "package", add_source_eos=True)
    assert import_folder(tmp_path / "package", tmp_path / "out").config.decoder_layers == 1


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"num_heads": np.int16(7)}, "decoder_heads 7"),
        ({"activation": np.int8(6)}, "the activation 6 of CTranslate2 is not supported"),
        ({"scale_embeddings": np.float32(3.5)}, "embeddings are scaled by 3.5"),
    ],
)
def test_settings_that_cannot_be_had_are_one_line(made, setting, said: str, tmp_path: Path, capsys) -> None:
    checkpoint, package = made
    shutil.copytree(package, tmp_path / "package")
    requantized(Checkpoint.open(checkpoint), tmp_path / "package" / "model", None, **setting)
    assert main(["import", str(tmp_path / "package"), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_the_command_says_what_it_is(made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, package = made
    assert main(["import", str(package), "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "CTranslate2: " in out
    assert "languages: en to de" in out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda package: (package / "sentencepiece.model").unlink(), "no sentencepiece.model"),
        (lambda package: (package / "metadata.json").unlink(), "give one --source-language and one --target-language"),
        (lambda package: cut(package / "model" / "model.bin"), "cut off"),
        (
            lambda package: (package / "model" / "model.bin").write_bytes(b"\x09\0\0\0"),
            "is version 9, known are 4, 5, 6",
        ),
        (lambda package: (package / "model" / "model.bin").write_bytes(b""), "cannot read a model of CTranslate2"),
        (lambda package: set_up(package, decoder_start_token=None), "a CTranslate2 model of many languages"),
        (
            lambda package: set_up(package, bos_token="<none>", add_source_bos=True),
            "no piece '<none>'",
        ),
    ],
)
def test_refuses_in_one_line(made, change, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, package = made
    shutil.copytree(package, tmp_path / "package")
    change(tmp_path / "package")
    assert main(["import", str(tmp_path / "package"), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-4_000])
