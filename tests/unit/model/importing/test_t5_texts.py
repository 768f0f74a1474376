"""The tokenizer of T5 and MADLAD-400, against that of transformers on the whole string, prompt or mark included."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from sentencepiece import SentencePieceProcessor
from transformers import AddedToken, T5Tokenizer

from dragoman.errors import DataError
from dragoman.language_marks import Languages
from dragoman.tokenizer import Tokenizer
from model.importing import t5
from model.importing.family import ANY_LANGUAGES, Texts, Wanted
from model.importing.source import Source

PAIRS = Path(__file__).parents[3] / "data" / "en-de.tsv"
MARKS = ["<2de>", "<2fr>", "<2en>", "<2translate>"]
PAD, EOS, UNKNOWN = 0, 1, 2
PROMPTS = {
    f"translation_en_to_{code}": {"prefix": f"translate English to {name}: ", "num_beams": 4}
    for code, name in (("de", "German"), ("fr", "French"), ("ro", "Romanian"))
}
TASKS = {"summarization": {"prefix": "summarize: "}} | PROMPTS
Write = Callable[..., Source]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SentencePiece models as T5 and as MADLAD-400 have them: `t5` and `madlad`."""
    folder = tmp_path_factory.mktemp("models")
    sentences = [part for line in PAIRS.read_text(encoding="utf-8").splitlines() for part in line.split("\t")[:2]]
    sentences += ["translate English to German: French: Romanian: "] * 9
    for name, marks in (("t5", []), ("madlad", MARKS)):
        content = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=content,
            vocab_size=400,
            pad_id=PAD,
            eos_id=EOS,
            unk_id=UNKNOWN,
            bos_id=-1,
            user_defined_symbols=marks,
            minloglevel=2,
        )
        (folder / name).write_bytes(content.getvalue())
    return folder


@pytest.fixture
def write(models: Path, tmp_path: Path) -> Write:
    """Writes a folder without weights."""

    def write(kind: str = "t5", **config: Any) -> Source:
        (tmp_path / "spiece.model").write_bytes((models / kind).read_bytes())
        settings = {"model_type": "t5", "vocab_size": 428, "eos_token_id": EOS, "pad_token_id": PAD} | config
        (tmp_path / "config.json").write_text(json.dumps(settings))
        return Source.open(tmp_path)

    return write


def theirs(source: Source, *added: str) -> T5Tokenizer:
    """The tokenizer of transformers, of the same pieces."""
    processor = SentencePieceProcessor(model_file=str(source.folder / "spiece.model"))
    pieces = [(processor.id_to_piece(id_), processor.get_score(id_)) for id_ in range(processor.get_piece_size())]
    tokenizer = T5Tokenizer(vocab=pieces, extra_ids=0, additional_special_tokens=None)
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in added])
    return tokenizer


def ours(texts: Texts) -> Tokenizer:
    return Tokenizer.of({Path(name): content for name, content in texts.tokenizer.items()})


def source_ids(texts: Texts, text: str, source: str, target: str) -> list[int]:
    """What is given to the encoder."""
    languages: Languages = texts.languages
    before, after = languages.of(source), languages.of(target)
    return [*before.source_prefix, *after.target_tag, *ours(texts).encode(text), EOS, *before.source_suffix]


TEXTS = ["Tom is here.", "The cat sat on the mat, and 12 dogs barked!", "a", "(Well) - who knows?", "Übermut x@y.z"]


@pytest.mark.parametrize("text", TEXTS)
def test_prompts_are_those_of_the_whole_string(write: Write, text: str) -> None:
    source = write(task_specific_params=TASKS)
    texts = t5.texts(source, ANY_LANGUAGES)
    tokenizer = theirs(source)
    for target, prompt in (("de", "German"), ("fr", "French"), ("ro", "Romanian")):
        expected = tokenizer(f"translate English to {prompt}: {text}").input_ids
        assert source_ids(texts, text, "en", target) == expected


def test_a_prompt_is_divided_between_the_languages(write: Write) -> None:
    source = write(task_specific_params=TASKS)
    texts = t5.texts(source, ANY_LANGUAGES)
    languages = texts.languages
    assert (languages.sources, languages.targets) == (("en",), ("de", "fr", "ro"))
    decode = SentencePieceProcessor(model_file=str(source.folder / "spiece.model")).decode
    assert decode(list(languages.of("en").source_prefix)) == "translate English to"
    assert [decode(list(languages.of(code).target_tag)) for code in languages.targets] == [
        "German:", "French:", "Romanian:",
    ]  # fmt: skip
    assert texts.unknown_id == UNKNOWN


def test_both_directions_have_prompts_of_their_own(write: Write) -> None:
    back = {"translation_de_to_en": {"prefix": "translate German to English: "}}
    both = {"translation_en_to_de": PROMPTS["translation_en_to_de"]} | back
    source = write(task_specific_params=both)
    texts = t5.texts(source, ANY_LANGUAGES)
    for pair, prompt in ((("en", "de"), "English to German"), (("de", "en"), "German to English")):
        assert source_ids(texts, "Tom.", *pair) == theirs(source)(f"translate {prompt}: Tom.").input_ids


def test_prompts_for_some_pairs_only_leave_the_choice_to_the_user(write: Write) -> None:
    back = {"translation_de_to_en": {"prefix": "translate German to English: "}}
    source = write(task_specific_params=TASKS | back)
    with pytest.raises(DataError, match="has prompts for en to de, en to fr, en to ro, de to en only"):
        t5.texts(source, ANY_LANGUAGES)
    chosen = t5.texts(source, Wanted(sources=("de",), targets=("en",)))
    assert source_ids(chosen, "Tom.", "de", "en") == theirs(source)("translate German to English: Tom.").input_ids


def test_languages_are_restricted(write: Write) -> None:
    chosen = t5.texts(write(task_specific_params=TASKS), Wanted(languages=("en", "fr"))).languages
    assert (chosen.sources, chosen.targets) == (("en",), ("fr",))


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_marks_are_those_of_the_whole_string(write: Write, text: str, listed: bool) -> None:
    """Whether the folder lists them among the added tokens or not; then SentencePiece puts a blank before them."""
    source = write("madlad")
    added = MARKS if listed else []
    processor = SentencePieceProcessor(model_file=str(source.folder / "spiece.model"))
    entries = [{"content": piece, "id": processor.piece_to_id(piece)} for piece in added]
    (source.folder / "tokenizer.json").write_text(json.dumps({"added_tokens": entries}))
    texts = t5.texts(source, ANY_LANGUAGES)
    assert set(texts.languages.targets) == set(texts.languages.sources) == {"de", "fr", "en"}
    for target in ("de", "fr"):
        assert source_ids(texts, text, "en", target) == theirs(source, *added)(f"<2{target}> {text}").input_ids
    assert texts.languages.target("<2de>") == "de"


@pytest.mark.parametrize("tasks", [["translation_en_to_de"], {"translation_en_to_de": "translate"}])
def test_tasks_without_prompts_are_none(write: Write, tasks: Any) -> None:
    wanted = Wanted(sources=("en",), targets=("de",))
    assert t5.texts(write(task_specific_params=tasks), wanted) == t5.texts(write(), wanted)


def test_a_mark_in_a_text_is_text(write: Write) -> None:
    source = write("madlad")
    processor = SentencePieceProcessor(model_file=str(source.folder / "spiece.model"))
    assert processor.piece_to_id("<2de>") in processor.encode("say <2de> now")
    ids = ours(t5.texts(source, ANY_LANGUAGES)).encode("say <2de> now </s>")
    assert not {processor.piece_to_id("<2de>"), EOS, PAD} & set(ids)


def test_rows_beyond_the_pieces_are_no_text(write: Write) -> None:
    tokenizer = ours(t5.texts(write(task_specific_params=TASKS), ANY_LANGUAGES))
    assert tokenizer.vocabulary_sizes == (428, 428)
    ids = tokenizer.encode("Tom is here.")
    assert tokenizer.decode([*ids, 427, EOS, PAD]) == "Tom is here."


def test_without_prompts_and_marks_the_user_names_the_pair(write: Write) -> None:
    with pytest.raises(DataError, match=r"does not say its languages: no prompts .* give --source-language"):
        t5.texts(write(), ANY_LANGUAGES)
    pair = Wanted(sources=("en",), targets=("de",))
    texts = t5.texts(write(), pair)
    assert source_ids(texts, "Tom.", "en", "de") == theirs(write())("Tom.").input_ids
    assert texts.warnings == ["config.json has no prompt (prefix): sources are read as they are"]
    prompted = write(prefix="say: ")
    texts = t5.texts(prompted, pair)
    assert source_ids(texts, "Tom.", "en", "de") == theirs(prompted)("say: Tom.").input_ids
    assert texts.warnings == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"task_specific_params": {"translation_en_to_de": {"prefix": "de>"}}},
            "the prompt 'de>' must end with a blank",
        ),
        ({"eos_token_id": 7}, "eos_token_id 7 is not </s> in spiece.model"),
        ({"vocab_size": 300}, "and the model 300 pieces"),
    ],
)
def test_what_does_not_fit_is_refused(write: Write, config: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        t5.texts(write(**config), ANY_LANGUAGES)


def test_bytes_are_refused(write: Write) -> None:
    source = write()
    (source.folder / "spiece.model").unlink()
    with pytest.raises(DataError, match=r"no spiece.model \(ByT5, which reads bytes, is not supported\)"):
        t5.texts(source, ANY_LANGUAGES)
