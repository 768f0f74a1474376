"""A vocabulary beside a SentencePiece model."""

import io
import json
from pathlib import Path

import pytest
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from dragoman.errors import BundleError
from dragoman.tokenizer import Tokenizer
from dragoman.vocabulary import Vocabulary

SENTENCES = ["good morning tom", "where is the station", "the station is here"]
ORIGIN = Path("vocabulary.json")


@pytest.fixture(scope="module")
def processor() -> SentencePieceProcessor:
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 10), model_writer=model, vocab_size=60, hard_vocab_limit=False, minloglevel=2
    )
    return SentencePieceProcessor(model_proto=model.getvalue())


def pieces(processor: SentencePieceProcessor) -> list[str]:
    return [processor.id_to_piece(id_) for id_ in range(processor.get_piece_size())]


@pytest.fixture(scope="module")
def vocabulary(processor: SentencePieceProcessor) -> Vocabulary:
    """Other ids than SentencePiece's, a piece of another model, one piece without an id, and rows without a piece."""
    own = pieces(processor)
    listed = [None, "ß", *reversed(own[3:-1]), "<unk>", None, None]
    return Vocabulary.of(processor, json.dumps(listed).encode(), ORIGIN)


def test_there_and_back(vocabulary: Vocabulary) -> None:
    for text in SENTENCES[:2]:  # the last one needs the piece without an id
        assert vocabulary.decode(vocabulary.encode(text)) == text


def test_an_unknown_character_that_another_model_has(vocabulary: Vocabulary) -> None:
    assert 1 in vocabulary.encode("the ß")
    assert vocabulary.decode(vocabulary.encode("the ß")) == "the ß"


def test_what_is_unknown_has_one_id_and_no_text(vocabulary: Vocabulary, processor: SentencePieceProcessor) -> None:
    dropped = pieces(processor)[-1]
    assert vocabulary.encode("日本")[-1] == vocabulary.unknown_id
    assert vocabulary.encode(dropped)[-1] == vocabulary.unknown_id
    assert vocabulary.decode([0, vocabulary.unknown_id, len(vocabulary) - 1]) == ""
    assert vocabulary.decode([]) == ""


def test_spans(vocabulary: Vocabulary, processor: SentencePieceProcessor) -> None:
    tokenizer = Tokenizer(vocabulary, vocabulary)
    text = "the 日本 ß good"
    spans = tokenizer.source_spans(text)
    assert len(spans) == len(vocabulary.encode(text))
    assert {"日本", "ß"} <= {text[start:stop] for start, stop in spans}
    ids = vocabulary.encode("the ß")
    written, spans = tokenizer.target_spans([0, *ids, vocabulary.unknown_id, ids[0]])
    assert written == vocabulary.decode([*ids, ids[0]]).strip()
    assert len(spans) == len(ids) + 3
    assert spans[0] == spans[1]  # an id without text
    assert written[slice(*spans[len(ids)])] == "ß"
    assert spans[-1] == spans[-2] == (len(written) - len(written.split()[-1]), len(written))


def test_pieces_that_begin_a_word_have_ids_of_their_own(vocabulary: Vocabulary) -> None:
    tokenizer = Tokenizer(vocabulary, vocabulary)
    spelled = vocabulary.pieces(range(len(vocabulary)))
    begin = {id_ for id_, piece in enumerate(spelled) if piece.startswith("▁")}
    assert tokenizer.begins_word == begin
    assert {0, len(vocabulary) - 1}.isdisjoint(begin)


def test_candidates(vocabulary: Vocabulary) -> None:
    candidates = vocabulary.candidates("where is the station", 3)
    assert candidates[0] == vocabulary.encode("where is the station")
    assert {vocabulary.decode(ids) for ids in candidates} == {"where is the station"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"nonsense", "cannot read the vocabulary"),
        (b'{"a": 1}', "must be a list of strings and null"),
        (b"[1]", "must be a list of strings and null"),
        (b'["a"]', "no '<unk>'"),
        (b'["<unk>", "a", "a"]', "a piece is there twice"),
    ],
)
def test_unreadable(processor: SentencePieceProcessor, content: bytes, message: str) -> None:
    with pytest.raises(BundleError, match=f"vocabulary.json: .*{message}"):
        Vocabulary.of(processor, content, ORIGIN)


def test_files_of_a_tokenizer(processor: SentencePieceProcessor, tmp_path: Path) -> None:
    model, listed = processor.serialized_model_proto(), json.dumps([None, *pieces(processor)])
    (tmp_path / "source.model").write_bytes(model)
    (tmp_path / "target.model").write_bytes(model)
    (tmp_path / "source_vocabulary.json").write_text(listed)
    with pytest.raises(BundleError, match=r"source_vocabulary\.json and target_vocabulary\.json need each other"):
        Tokenizer.open(tmp_path)
    (tmp_path / "target_vocabulary.json").write_text(json.dumps([None, None, *pieces(processor)]))
    tokenizer = Tokenizer.open(tmp_path)
    size = processor.get_piece_size()
    assert tokenizer.vocabulary_sizes == (size + 1, size + 2)
    assert tokenizer.encode_target(SENTENCES[0]) == [id_ + 1 for id_ in tokenizer.encode(SENTENCES[0])]
    assert tokenizer.candidates(SENTENCES[0], 2)[0] == tokenizer.encode(SENTENCES[0])
