import bz2
import gzip
import lzma
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.tokenizer import Tokenizer
from model.data import Corpus, PairDataset, SpecialIds, open_text, pad, read_corpus, read_sentences

IDS = SpecialIds(pad=0, start=1, eos=2)
GOOD = "good morning\tguten Morgen\n"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".tsv": bytes,
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
}
WORDS = st.lists(
    st.sampled_from(["the", "station", "train", "bakery", "öffnet", "morgen", "你好", "😀"]), min_size=1, max_size=9
)
PAIRS = st.lists(st.tuples(WORDS.map(" ".join), WORDS.map(" ".join)), min_size=1, max_size=40)


def corpus_of(pairs: list[tuple[str, str]]) -> Corpus:
    return Corpus([source for source, _ in pairs], [target for _, target in pairs], [])


@pytest.mark.parametrize("suffix", PACKERS)
def test_reads_plain_and_compressed(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"corpus{suffix}"
    file.write_bytes(PACKERS[suffix]("Where is it?\tWo ist es?\nYes.\t„Ja“ – schön 😀.\n".encode()))
    corpus = read_corpus(file)
    assert corpus.sources == ["Where is it?", "Yes."]
    assert corpus.targets == ["Wo ist es?", "„Ja“ – schön 😀."]
    assert corpus.broken_lines == []
    assert len(corpus) == 2


def test_windows_line_ends_and_a_last_line_without_one(tmp_path: Path) -> None:
    file = tmp_path / "corpus.tsv"
    file.write_bytes(b"a\tb\r\n c \t d")
    assert read_corpus(file) == Corpus(["a", "c"], ["b", "d"], [])


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    """Else line numbers and pairs would shift behind a form feed or U+2028 within a sentence."""
    file = tmp_path / "corpus.tsv"
    file.write_text("a\u2028b\x0cc\x85d\tx\ny\tz\n", encoding="utf-8")
    assert read_corpus(file).targets == ["x", "z"]


BROKEN = [b"no tab\n", b"too\tmany\ttabs\n", b"\tno source\n", b"no target\t \n", b"\n", b"caf\xe9\tCaf\xc3\xa9\n"]


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_line_is_numbered_and_left_out(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "corpus.tsv"
    file.write_bytes(GOOD.encode() * 3 + line + GOOD.encode())
    corpus = read_corpus(file)
    assert corpus.broken_lines == [4]
    assert len(corpus) == 4


def test_broken_lines_up_to_one_in_a_hundred(tmp_path: Path) -> None:
    file = tmp_path / "corpus.tsv"
    file.write_text("broken\n" * 3 + GOOD * 297)
    assert read_corpus(file).broken_lines == [1, 2, 3]
    file.write_text("broken\n" * 3 + GOOD * 296)
    with pytest.raises(DataError, match=r"3 of 299 lines .*first broken lines: \[1, 2, 3\]"):
        read_corpus(file)


@pytest.mark.parametrize("content", ["", "broken\n", "\n\n\n"])
def test_no_pair_at_all(tmp_path: Path, content: str) -> None:
    file = tmp_path / "corpus.tsv"
    file.write_text(content)
    with pytest.raises(DataError, match=r"corpus\.tsv"):
        read_corpus(file)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"missing\.tsv: cannot read"):
        read_corpus(tmp_path / "missing.tsv")


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".bz2"])
def test_damaged_archives(tmp_path: Path, suffix: str) -> None:
    whole = PACKERS[suffix]("".join(f"{n} mornings\t{n} Morgen\n" for n in range(2000)).encode())
    middle = len(whole) // 2
    damages = {
        "no archive": GOOD.encode(),
        "cut short": whole[:middle],
        "changed": whole[:middle] + bytes(255 - byte for byte in whole[middle : middle + 64]) + whole[middle + 64 :],
    }
    file = tmp_path / f"corpus{suffix}"
    for damage in damages.values():
        file.write_bytes(damage)
        with pytest.raises(DataError, match="corpus"):
            read_corpus(file)


def test_open_text_is_utf8_whatever_the_suffix(tmp_path: Path) -> None:
    file = tmp_path / "text.xz"
    file.write_bytes(lzma.compress("schön\n".encode()))
    with open_text(file) as lines:
        assert list(lines) == ["schön\n"]


@settings(deadline=None, max_examples=40)
@given(
    pairs=PAIRS,
    max_tokens=st.integers(2, 60),
    batch_tokens=st.integers(1, 300),
    candidates=st.sampled_from([1, 3]),
    seed=st.integers(0, 99),
)
def test_batches_of_an_epoch(
    tokenizer: Tokenizer,
    pairs: list[tuple[str, str]],
    max_tokens: int,
    batch_tokens: int,
    candidates: int,
    seed: int,
) -> None:
    """Every pair that is short enough exactly once, and no more padded tokens than the budget."""
    dataset = PairDataset(corpus_of(pairs), tokenizer, IDS, max_tokens=max_tokens, candidates=candidates)
    fits = [max(len(tokenizer.encode(s)), len(tokenizer.encode_target(t))) < max_tokens for s, t in pairs]
    assert len(dataset) == sum(fits)
    assert dataset.too_long == len(pairs) - sum(fits)
    plan = dataset.epoch(seed, 0, batch_tokens)
    assert sorted(pair for batch in plan for pair, _ in batch) == list(range(len(dataset)))
    for items in plan:
        batch = dataset.collate(items)
        for side in (batch.source, batch.target_in, batch.target_out):
            assert side.numel() <= batch_tokens or len(items) == 1
            assert side.shape[1] <= max_tokens
        assert all(pair < len(dataset) and variant < len(dataset.sources[pair]) for pair, variant in items)


@settings(deadline=None, max_examples=20)
@given(pairs=PAIRS, seed=st.integers(0, 99), epoch=st.integers(0, 9))
def test_same_seed_same_order(tokenizer: Tokenizer, pairs: list[tuple[str, str]], seed: int, epoch: int) -> None:
    first, second = (PairDataset(corpus_of(pairs), tokenizer, IDS, max_tokens=99, candidates=4) for _ in range(2))
    second.epoch(seed, epoch + 1, 100)  # what was asked before must not matter
    assert first.epoch(seed, epoch, 100) == second.epoch(seed, epoch, 100)


def test_other_seed_or_epoch_other_order(corpus: Corpus, tokenizer: Tokenizer) -> None:
    dataset = PairDataset(corpus, tokenizer, IDS, max_tokens=99)
    plans = [dataset.epoch(*seed_epoch, 1000) for seed_epoch in ((1, 0), (1, 1), (2, 0))]
    assert all(a != b for a in plans for b in plans if a is not b)


def test_batches_waste_little(corpus: Corpus, tokenizer: Tokenizer) -> None:
    dataset = PairDataset(corpus, tokenizer, IDS, max_tokens=99)
    batches = [dataset.collate(items) for items in dataset.epoch(1, 0, 1000)]
    padding = sum(int((batch.target_out == IDS.pad).sum()) for batch in batches)
    assert padding < 0.1 * sum(batch.target_out.numel() for batch in batches)


def test_segmentations_are_drawn_the_best_most_often(corpus: Corpus, tokenizer: Tokenizer) -> None:
    dataset = PairDataset(corpus, tokenizer, IDS, max_tokens=999, candidates=4)
    assert all(variants[0] == tokenizer.encode(s) for variants, s in zip(dataset.sources, corpus.sources, strict=True))
    drawn = Counter(variant for epoch in range(4) for batch in dataset.epoch(1, epoch, 1000) for _, variant in batch)
    assert drawn[0] > drawn[1] > drawn[2] > drawn[3] > 0


def test_collate(tokenizer: Tokenizer) -> None:
    pairs = [("the", "der Bahnhof"), ("the station is here", "hier")]
    dataset = PairDataset(corpus_of(pairs), tokenizer, IDS, max_tokens=99)
    batch = dataset.collate([(0, 0), (1, 0)])
    for row, (source, target) in enumerate(pairs):
        source_ids, target_ids = tokenizer.encode(source), tokenizer.encode_target(target)
        length = int(batch.source_lengths[row])
        assert batch.source[row, :length].tolist() == [*source_ids, IDS.eos]
        assert not batch.source[row, length:].any()
        assert batch.target_in[row].tolist()[: len(target_ids) + 1] == [IDS.start, *target_ids]
        assert batch.target_out[row].tolist()[: len(target_ids) + 1] == [*target_ids, IDS.eos]
        assert not batch.target_out[row, len(target_ids) + 1 :].any()
    assert batch.target_in.shape == batch.target_out.shape


def test_pad() -> None:
    padded = pad([[5], [6, 7, 8], []], 9)
    assert padded.dtype == torch.int64
    assert padded.tolist() == [[5, 9, 9], [6, 7, 8], [9, 9, 9]]


def test_lines_without_tabs_are_sources(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt.gz"
    file.write_bytes(gzip.compress(b" One.\r\n\nTwo.\n"))
    assert read_sentences(file) == Corpus(["One.", "Two."], [], [])
    file.write_bytes(gzip.compress(GOOD.encode()))
    assert read_sentences(file) == read_corpus(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"\n \n", "lines are not 'source<TAB>target'"), (b"one\n\xff\n", "sentence 2 is not UTF-8")],
)
def test_lines_that_are_no_sentences(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_sentences(file)
    with pytest.raises(DataError, match="cannot read: No such file"):
        read_sentences(tmp_path / "none")
