import bz2
import codecs
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.errors import DataError
from model.corpus import Corpus, Row, open_text, read_corpus, read_rows, read_sentences

GOOD = "good morning\tguten Morgen\n"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".tsv": bytes,
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
}


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


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_byte_order_mark_is_no_text(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"corpus{suffix}"
    file.write_bytes(PACKERS[suffix](codecs.BOM_UTF8 + b"a\tb\nc\td\n"))
    assert read_corpus(file) == Corpus(["a", "c"], ["b", "d"], [])
    file.write_bytes(PACKERS[suffix](codecs.BOM_UTF8 + b"a\nc\n"))
    assert read_sentences(file) == Corpus(["a", "c"], [], [])


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


def test_a_third_column_is_a_tag(tmp_path: Path) -> None:
    """The first whole line says how many columns the file has."""
    file = tmp_path / "corpus.part.tsv"
    file.write_text("broken\n" + "a\tb\tui\n" * 200 + "c\td\n")
    broken: list[int] = []
    assert [*read_rows(file, broken)] == [Row("a", "b", "ui")] * 200
    assert broken == [1, 202]
    assert read_corpus(file) == Corpus(["a"] * 200, ["b"] * 200, [1, 202])
    file.write_text("a\tb\n" * 200 + "a\tb\tui\n")
    assert [*read_rows(file, [])] == [Row("a", "b", "corpus")] * 200
    file.write_text("a\tb\tui\n" + "a\tb\n" * 9)
    with pytest.raises(DataError, match="9 of 10 lines are not 'source<TAB>target<TAB>tag'"):
        list(read_rows(file, []))
