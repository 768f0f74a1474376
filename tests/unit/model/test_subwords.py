from pathlib import Path

import pytest

from dragoman.errors import DataError
from dragoman.tokenizer import Tokenizer, tokenizer_files
from model.corpus import Corpus
from model.subwords import train_tokenizer

UNSEEN = ["😀👩‍👩‍👧", "Привет", "你好", "€ § ✓", "a\u0301"]


@pytest.fixture(scope="module")
def apart(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apart")
    train_tokenizer(corpus, folder, vocabulary_size=380, joint=False)
    return folder


def test_joint(tokenizer_folder: Path, tokenizer: Tokenizer) -> None:
    assert tokenizer_files(tokenizer_folder) == ["tokenizer.model"]
    assert tokenizer.vocabulary_sizes == (400, 400)
    text = "Die Bäckerei opens."
    assert tokenizer.encode(text) == tokenizer.encode_target(text)


def test_per_side(apart: Path) -> None:
    tokenizer = Tokenizer.open(apart)
    assert tokenizer_files(apart) == ["source.model", "target.model"]
    assert tokenizer.vocabulary_sizes == (380, 380)
    german = "Könnten Sie zwei Mohnbrötchen in die Tüte packen?"
    assert len(tokenizer.encode_target(german)) < len(tokenizer.encode(german))
    assert tokenizer.decode(tokenizer.encode_target(german)) == german


@pytest.mark.parametrize("text", UNSEEN)
def test_bytes_stand_in_for_unseen_characters(tokenizer: Tokenizer, apart: Path, text: str) -> None:
    unknown = 3
    for each in (tokenizer, Tokenizer.open(apart)):
        assert unknown not in each.encode(text)
        assert unknown not in each.encode_target(text)
    # The decoded text is the normal form (NFKC) of what went in.
    assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.decode(tokenizer.encode_target(text))
    assert tokenizer.decode(tokenizer.encode("😀 你好")) == "😀 你好"


def test_own_corpus_round_trips(tokenizer: Tokenizer, corpus: Corpus) -> None:
    for text in corpus.sources + corpus.targets:
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_ids_are_never_encoded(tokenizer: Tokenizer, corpus: Corpus) -> None:
    assert min(min(tokenizer.encode(text)) for text in [*corpus.sources, *UNSEEN, "<s></s><pad><unk>"]) > 3


@pytest.mark.parametrize(("joint", "sizes"), [(True, (266,)), (False, (263, 264))])
def test_a_small_corpus_gives_a_smaller_vocabulary(tmp_path: Path, joint: bool, sizes: tuple[int, ...]) -> None:
    corpus = Corpus(["a b"], ["c d e"], [])
    assert train_tokenizer(corpus, tmp_path, vocabulary_size=9000, joint=joint) == sizes
    assert Tokenizer.open(tmp_path).vocabulary_sizes == (sizes[0], sizes[-1])


@pytest.mark.parametrize(
    ("corpus", "size", "why"),
    [
        (
            Corpus(["a b"], ["c d"], []),
            261,
            "the characters of the corpus alone need 265; give --vocabulary-size 265 or more",
        ),
        (Corpus(["a" * 4193], ["b" * 4193], []), 400, "no sentence of the corpus has text of at most 4,192 bytes"),
        (Corpus([" "], ["\u3000"], []), 400, "no sentence of the corpus has text of at most 4,192 bytes"),
    ],
)
def test_a_corpus_of_which_no_tokenizer_can_be_made(tmp_path: Path, corpus: Corpus, size: int, why: str) -> None:
    with pytest.raises(DataError) as error:
        train_tokenizer(corpus, tmp_path / "tokenizer", vocabulary_size=size, joint=True)
    assert str(error.value) == f"cannot train a tokenizer of {size} pieces: {why}"


def test_same_corpus_same_tokenizer(corpus: Corpus, tokenizer_folder: Path, tmp_path: Path) -> None:
    train_tokenizer(corpus, tmp_path, vocabulary_size=400, joint=True)
    name = "tokenizer.model"
    assert (tmp_path / name).read_bytes() == (tokenizer_folder / name).read_bytes()
