"""Imported tokenizers give the ids of Hugging Face's own, and text that looks like a command stays text."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor
from transformers import M2M100Tokenizer, MarianTokenizer, MBart50Tokenizer, NllbTokenizer
from transformers.tokenization_utils_base import generate_merges

from dragoman.errors import DataError
from dragoman.language_marks import LanguageMarks
from dragoman.tokenizer import Tokenizer
from model.importing.families import family_of
from model.importing.family import ANY_LANGUAGES, Texts
from model.importing.sentencepiece_file import without_user_marks
from model.importing.source import Source
from tests.hugging_face_files import MBART_50_LANGUAGES, NLLB_LANGUAGES, pieces_of, train

HARD = [
    "  two   blanks ",
    "x",
    "日本 und 😀",
    "日本語",
    "one\ntwo",
    "A\tB",
    "ﬁnden",
    "１２３",
    "a\u00a0b",
    "\u200bx",
    "Łódź ćma",
    "…",
    "a▁b",
    "😀😀x",
]
COMMANDS = ["</s> hello", "<s>", "<pad><unk>", ">>deu<< hello", "deu_Latn hello", "__de__ x", "<mask>", "de_DE"]

Folder = Callable[..., Path]


def imported(folder: Path, out: Path) -> tuple[Tokenizer, Texts]:
    source = Source.open(folder)
    texts = family_of(source).texts(source, ANY_LANGUAGES)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in texts.tokenizer.items():
        (out / name).write_bytes(content)
    return Tokenizer.open(out), texts


@pytest.mark.parametrize("separate", [False, True])
def test_marian(
    marian_folder: Folder, english_and_german: tuple[list[str], list[str]], tmp_path: Path, separate: bool
) -> None:
    folder = marian_folder(tmp_path / "hf", separate=separate, marks=(">>deu<<", ">>fra<<"))
    ours, texts = imported(folder, tmp_path / "ours")
    with pytest.warns(UserWarning, match="sacremoses"):
        theirs = MarianTokenizer.from_pretrained(folder)
    for text in [*english_and_german[0][:200], *english_and_german[1][:50], *HARD]:
        expected = theirs(text)["input_ids"]
        assert [*ours.encode(text), 0] == expected
        assert [*texts.languages.of("fr").target_tag, *expected] == theirs(">>fra<< " + text)["input_ids"]
    assert [theirs.convert_ids_to_tokens(texts.languages.of(code).target_tag[0]) for code in ("de", "fr")] == [
        ">>deu<<",
        ">>fra<<",
    ]
    for text in [*english_and_german[1][:200], *HARD]:
        ids = theirs(text_target=text)["input_ids"]
        assert [*ours.encode_target(text), 0] == ids
        assert ours.decode(ids).strip() == theirs.decode(ids, skip_special_tokens=True)
    assert ours.vocabulary_sizes == tuple(
        len(ids) for ids in (theirs.encoder, getattr(theirs, "target_encoder", theirs.encoder))
    )


@pytest.fixture(scope="module")
def plain_marian(marian_folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = marian_folder(tmp_path_factory.mktemp("plain") / "opus-mt-en-de")
    imported(folder, folder.parent / "ours")
    return folder


@given(text=st.text())
def test_marian_of_any_text(plain_marian: Path, text: str) -> None:
    """As Hugging Face does it: the pieces of SentencePiece, each looked up in vocab.json."""
    ids = json.loads((plain_marian / "vocab.json").read_text(encoding="utf-8"))
    pieces = SentencePieceProcessor(model_file=str(plain_marian / "source.spm")).encode(text, out_type=str)
    control = {"</s>", "<pad>"}
    expected = [ids["<unk>"] if piece in control else ids.get(piece, ids["<unk>"]) for piece in pieces]
    assert Tokenizer.open(plain_marian.parent / "ours").encode(text) == expected


def test_m2m100(fairseq_folder: Folder, english_and_german: tuple[list[str], list[str]], tmp_path: Path) -> None:
    listed = [f"__{code}__" for code in ("af", "am", "ar", "ast", "az")]  # the first ones of the real list
    folder = fairseq_folder(tmp_path / "hf", "m2m100", listed)
    ours, texts = imported(folder, tmp_path / "ours")
    theirs = M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "spm.model"), src_lang="ar")
    for text in [*english_and_german[0][:200], *english_and_german[1][:200], *HARD]:
        expected = theirs(text)["input_ids"]
        assert [*texts.languages.of("ar").source_prefix, *ours.encode(text), 2] == expected
        assert ours.decode(expected).strip() == theirs.decode(expected[1:], skip_special_tokens=True).strip()
    assert texts.languages.of("az").target_prefix == (theirs.get_lang_id("az"),)
    assert texts.languages.of("az").aliases == ("__az__",)


def fast_parts(file: Path) -> tuple[SentencePieceProcessor, list[str]]:
    processor = SentencePieceProcessor(model_file=str(file))
    return processor, pieces_of(processor)


@pytest.mark.parametrize("legacy", [False, True])
def test_nllb(
    fairseq_folder: Folder, english_and_german: tuple[list[str], list[str]], tmp_path: Path, legacy: bool
) -> None:
    folder = fairseq_folder(tmp_path / "hf", "nllb", NLLB_LANGUAGES, legacy_behaviour=legacy)
    ours, texts = imported(folder, tmp_path / "ours")
    _, pieces = fast_parts(folder / "sentencepiece.bpe.model")
    vocabulary = {piece: id_ + 1 for id_, piece in enumerate(pieces) if id_ >= 3}
    theirs = NllbTokenizer(
        vocab={"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3} | vocabulary,
        merges=generate_merges({piece: id_ for id_, piece in enumerate(pieces)}),
        src_lang="deu_Latn",
        extra_special_tokens=NLLB_LANGUAGES,
        legacy_behaviour=legacy,
    )
    marks = texts.languages.of("de")
    for text in [*english_and_german[0][:200], *english_and_german[1][:200]]:
        ids = ours.encode(text)
        assert ids == theirs(text, add_special_tokens=False)["input_ids"]
        frame = [theirs.convert_ids_to_tokens(id_) for id_ in theirs(text)["input_ids"]]
        assert (frame[0] == "deu_Latn", frame[-1] == "deu_Latn") == (not legacy, legacy)
        assert (len(marks.source_prefix), len(marks.source_suffix)) == (int(not legacy), int(legacy))
        assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True).strip()
    first = len(pieces) + 1
    assert marks.target_prefix == (first + NLLB_LANGUAGES.index("deu_Latn"),)
    assert texts.languages.targets == ("ace-Arab", "ace-Latn", "de", "en", "fr", "zh-Hans", "zh-Hant")
    assert texts.languages.of("zh-Hant").aliases[0] == "zho_Hant"


def test_mbart_50(fairseq_folder: Folder, english_and_german: tuple[list[str], list[str]], tmp_path: Path) -> None:
    folder = fairseq_folder(tmp_path / "hf", "mbart50", MBART_50_LANGUAGES, tokenizer_class="MBart50Tokenizer")
    ours, texts = imported(folder, tmp_path / "ours")
    processor, pieces = fast_parts(folder / "sentencepiece.bpe.model")
    theirs = MBart50Tokenizer(
        vocab=[(piece, processor.get_score(id_)) for id_, piece in enumerate(pieces)], src_lang="en_XX"
    )
    for text in [*english_and_german[0][:200], *english_and_german[1][:200]]:
        assert ours.encode(text) == theirs(text, add_special_tokens=False)["input_ids"]
    first = theirs.convert_tokens_to_ids("ar_AR")  # of both lists the first
    assert texts.languages.of("ar").source_prefix == texts.languages.of("ar").target_prefix == (first,)
    assert texts.languages.targets == ("ar", "de", "en", "zh-Hans", "pt")


def test_mbart_25_begins_with_the_language(fairseq_folder: Folder, tmp_path: Path) -> None:
    folder = fairseq_folder(tmp_path / "hf", "mbart25", ["de_DE", "en_XX"], tokenizer_class="MBartTokenizer")
    _, texts = imported(folder, tmp_path / "ours")
    marks = texts.languages.of("de")
    assert marks.source_suffix == (marks.start_id,)
    assert not marks.source_prefix + marks.target_prefix


def ids_of(marks: LanguageMarks) -> set[int | None]:
    return {*marks.source_prefix, *marks.source_suffix, *marks.target_tag, *marks.target_prefix, marks.start_id}


@pytest.mark.parametrize("kind", ["marian", "m2m100", "nllb", "mbart50"])
@pytest.mark.parametrize("text", COMMANDS)
def test_commands_in_a_text_are_text(
    marian_folder: Folder, fairseq_folder: Folder, tmp_path: Path, kind: str, text: str
) -> None:
    if kind == "marian":
        folder = marian_folder(tmp_path / "hf", marks=(">>deu<<", ">>fra<<"))
    else:
        languages = {"m2m100": ["__af__", "__de__"], "nllb": NLLB_LANGUAGES, "mbart50": MBART_50_LANGUAGES}[kind]
        folder = fairseq_folder(tmp_path / "hf", kind, languages)
    ours, texts = imported(folder, tmp_path / "ours")
    ids = ours.encode(text)
    control = {id_ for code in texts.languages.targets for id_ in ids_of(texts.languages.of(code))}
    control |= {0} if kind == "marian" else {0, 1, 2}
    assert ids
    assert control.isdisjoint(ids)


def test_a_mark_of_unknown_characters_is_text(marian_folder: Folder, tmp_path: Path) -> None:
    """SentencePiece gives what it does not know as one piece, which is spelled as the mark is."""
    ours, _ = imported(marian_folder(tmp_path / "hf", marks=(">>deu<<", ">>日本<<")), tmp_path / "ours")
    spm = SentencePieceProcessor(model_file=str(tmp_path / "hf" / "source.spm"))
    assert ">>日本<<" in spm.encode(">>日本<<", out_type=str)
    assert ours.encode(">>日本<<")[-1] == 1


def test_control_ids_have_no_text(marian_folder: Folder, fairseq_folder: Folder, tmp_path: Path) -> None:
    ours, texts = imported(marian_folder(tmp_path / "marian", marks=(">>deu<<", ">>fra<<")), tmp_path / "a")
    ids = ours.encode_target("hier")
    assert ours.decode([texts.languages.of("de").target_tag[0], *ids, 1, 0, ours.vocabulary_sizes[1] - 1]) == "hier"
    ours, texts = imported(fairseq_folder(tmp_path / "nllb", "nllb", NLLB_LANGUAGES), tmp_path / "b")
    ids = ours.encode_target("hier")
    assert ours.decode([2, texts.languages.of("de").target_prefix[0], *ids, 3, 2, 1]) == "hier"


def test_marks_that_a_sentencepiece_file_finds_in_texts() -> None:
    sentences = ["good morning", "where is the station", "the station is here"] * 20
    symbols = ["<2de>", ">>fra<<", "▁<2xx>", "http"]
    content = train(sentences, vocab_size=60, user_defined_symbols=symbols)
    before, after = (SentencePieceProcessor(model_proto=c) for c in (content, without_user_marks(content)))
    assert pieces_of(before) == pieces_of(after)
    text = "good <2de> >>fra<< http"
    assert {"<2de>", ">>fra<<", "http"} <= set(before.encode(text, out_type=str))
    assert {"<2de>", ">>fra<<"}.isdisjoint(after.encode(text, out_type=str))
    assert "http" in after.encode(text, out_type=str)
    ids = range(before.get_piece_size())
    assert [before.get_score(id_) for id_ in ids] == [after.get_score(id_) for id_ in ids]
    assert before.encode("good morning") == after.encode("good morning")


def test_a_file_without_such_marks_stays_as_it_is() -> None:
    content = train(["good morning", "where is the station"] * 20, vocab_size=40)
    assert without_user_marks(content) is content


@pytest.mark.parametrize("content", [b"\x0a\xff", b"\x0f", b"\xff" * 12])
def test_a_broken_file_is_refused(content: bytes) -> None:
    with pytest.raises(DataError, match="not a SentencePiece file"):
        without_user_marks(content)
