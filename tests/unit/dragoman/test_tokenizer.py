import io
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceTrainer

from dragoman.errors import BundleError
from dragoman.tokenizer import Tokenizer, tokenizer_files

ENGLISH = ["good morning tom", "where is the station", "the station is here"]
GERMAN = ["guten morgen tom", "wo ist der bahnhof", "hier ist der schöne bahnhof"]
UNKNOWN = 3


def train(file: Path, sentences: list[str], vocabulary_size: int) -> None:
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(sentences * 10),
        model_writer=model,
        vocab_size=vocabulary_size,
        byte_fallback=True,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=UNKNOWN,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    file.write_bytes(model.getvalue())


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("joint")
    train(folder / "tokenizer.model", ENGLISH + GERMAN, 310)
    return folder


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apart")
    train(folder / "source.model", ENGLISH, 290)
    train(folder / "target.model", GERMAN, 300)
    return folder


@pytest.mark.parametrize("text", [*ENGLISH, *GERMAN, "😀 schöne 你好 Привет", "tom\u00a0tom", ""])
def test_joint(joint: Path, text: str) -> None:
    tokenizer = Tokenizer.open(joint)
    ids = tokenizer.encode(text)
    assert ids == tokenizer.encode_target(text)
    assert all(UNKNOWN < id_ < tokenizer.vocabulary_sizes[0] for id_ in ids)
    assert tokenizer.decode(ids) == text.replace("\u00a0", " ")


def test_each_side_its_own(apart: Path) -> None:
    tokenizer = Tokenizer.open(apart)
    assert tokenizer_files(apart) == ["source.model", "target.model"]
    source, target = tokenizer.vocabulary_sizes
    assert source != target
    assert max(tokenizer.encode(ENGLISH[0])) < source
    assert tokenizer.encode(GERMAN[2]) != tokenizer.encode_target(GERMAN[2])
    assert tokenizer.decode(tokenizer.encode_target(GERMAN[2])) == GERMAN[2]


@settings(deadline=None)
@given(text=st.text())
def test_any_text_has_ids_and_a_text_again(joint: Path, text: str) -> None:
    tokenizer = Tokenizer.open(joint)
    ids = tokenizer.encode(text)
    again = tokenizer.decode(ids)
    assert UNKNOWN not in ids
    assert tokenizer.decode(tokenizer.encode(again)) == again


def test_special_ids_have_no_text(joint: Path) -> None:
    tokenizer = Tokenizer.open(joint)
    ids = tokenizer.encode(GERMAN[1])
    assert tokenizer.decode([1, *ids, 2, 0, 0]) == GERMAN[1]
    assert tokenizer.decode([]) == ""


def test_source_spans(joint: Path) -> None:
    tokenizer = Tokenizer.open(joint)
    text = " the  sta\uff54\uff49\uff4fn \ufb01 \u2603! "
    spans = tokenizer.source_spans(text)
    assert len(spans) == len(tokenizer.encode(text))
    assert "".join(dict.fromkeys(text[start:stop] for start, stop in spans)) == text.replace(" ", "")
    assert spans[-1] == (len(text) - 2, len(text) - 1)
    assert sum(text[start:stop] == "\u2603" for start, stop in spans) >= 3  # of the bytes of a character, each


def test_target_spans_are_those_of_the_text_without_blanks_at_its_ends(joint: Path) -> None:
    tokenizer = Tokenizer.open(joint)
    blank, *ids = tokenizer.encode_target("\u2603 bahnhof")
    assert tokenizer.target_pieces([blank]) == ["\u2581"]
    text, spans = tokenizer.target_spans([blank, blank, *ids, blank, 2])
    assert text == "\u2603 bahnhof"
    assert spans[:5] == [(0, 1)] * 5
    assert spans[-3][1] == len(text)
    assert spans[-2:] == [(len(text), len(text))] * 2


@given(text=st.text(st.one_of(st.sampled_from(" \u3000\ufb01\uff21\u00bd\u0301ab.!"), st.characters(codec="utf-8"))))
@example(text="\x85000")
def test_spans_cover_any_text(joint: Path, text: str) -> None:
    """All that is no blank lies in a span, but for what the tokenizer leaves out."""
    tokenizer = Tokenizer.open(joint)
    ids = tokenizer.encode(text)
    written, target_spans = tokenizer.target_spans(ids)
    assert written == tokenizer.decode(ids).strip()
    for of, spans in ((text, tokenizer.source_spans(text)), (written, target_spans)):
        assert len(spans) == len(ids)
        assert all(before[0] <= after[0] and before[1] <= after[1] for before, after in pairwise(spans))
        assert all(before == after or before[1] <= after[0] for before, after in pairwise(spans))
        assert all(of[start:stop] == of[start:stop].strip() for start, stop in spans)
        covered = {place for start, stop in spans for place in range(start, stop)}
        left_out = [place for place in range(len(of)) if place not in covered and of[place].strip()]
        assert all(not tokenizer.decode(tokenizer.encode(of[place])).strip() for place in left_out)


def test_half_a_character_reads_as_a_replacement(joint: Path) -> None:
    """What streaming relies on: it holds such an end back."""
    tokenizer = Tokenizer.open(joint)
    ids = tokenizer.encode("😀")
    assert tokenizer.decode(ids[:-1]).endswith("\ufffd")
    assert tokenizer.decode(ids) == "😀"


def test_what_is_read_for_characters_without_pieces(joint: Path, tmp_path: Path) -> None:
    tokenizer = Tokenizer.open(joint)
    text = tokenizer.readable("sta\u00adtion ton\u00b4 to\u200dm\u2060")
    assert text == "sta\x7ftion ton' to\x7fm\x7f"
    assert tokenizer.encode(text) == tokenizer.encode("station ton' tom")
    train(tmp_path / "tokenizer.model", [*ENGLISH, "ja\u200dk ka\u200dj aj\u200dk", "\u200d \u200d"], 320)
    assert Tokenizer.open(tmp_path).readable("a\u200db\u00ad") == "a\u200db\x7f"  # it has a piece for the joiner


def test_candidates(joint: Path) -> None:
    tokenizer = Tokenizer.open(joint)
    candidates = tokenizer.candidates("where is the station", 5)
    assert len(candidates) == len({tuple(ids) for ids in candidates}) == 5
    assert candidates[0] == tokenizer.encode("where is the station")
    assert {tokenizer.decode(ids) for ids in candidates} == {"where is the station"}
    assert tokenizer.candidates("", 5) == [[]]


def test_a_word_begins_with_a_blank_or_where_no_word_can_be(apart: Path) -> None:
    tokenizer = Tokenizer.open(apart)
    ids = tokenizer.encode_target("wo ist der bahnhof")
    words = sum(piece.startswith("▁") for piece in tokenizer.target_pieces(ids))
    assert words == 4
    assert sum(id_ in tokenizer.begins_word for id_ in ids) == 4
    assert not tokenizer.begins_word & {0, 1, 2, UNKNOWN}
    assert not any(id_ in tokenizer.begins_word for id_ in tokenizer.encode_target("ж")[-2:]), "bytes of a letter"
    assert tokenizer.begins_word is tokenizer.begins_word


def test_many_threads(joint: Path) -> None:
    tokenizer = Tokenizer.open(joint)
    texts = (ENGLISH + GERMAN) * 50
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: tokenizer.decode(tokenizer.encode(text)), texts)) == texts


def test_joint_wins_over_both_sides(joint: Path, apart: Path, tmp_path: Path) -> None:
    for folder in (joint, apart):
        for name in tokenizer_files(folder):
            (tmp_path / name).write_bytes((folder / name).read_bytes())
    assert tokenizer_files(tmp_path) == ["tokenizer.model"]


def test_one_side_alone_is_none(apart: Path, tmp_path: Path) -> None:
    (tmp_path / "source.model").write_bytes((apart / "source.model").read_bytes())
    with pytest.raises(BundleError, match=r"no tokenizer\.model, nor source\.model and target\.model"):
        Tokenizer.open(tmp_path)


@pytest.mark.parametrize("content", [b"", b"nonsense"])
def test_unreadable(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokenizer.model").write_bytes(content)
    with pytest.raises(BundleError, match=r"tokenizer\.model: cannot read the tokenizer"):
        Tokenizer.open(tmp_path)
