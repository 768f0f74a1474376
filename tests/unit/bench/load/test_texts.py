import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.texts import read_data_file, serialize_requests
from dragoman.errors import DataError
from dragoman.v1 import translation_pb2

TSV = "Good morning.\tGuten Morgen.\nThanks!\tDanke!\n"


def write(path: Path, data: str | bytes) -> Path:
    raw = data.encode() if isinstance(data, str) else data
    compress = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    path.write_bytes(compress(raw))
    return path


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.tsv.xz", "a", "a.xz"])
def test_tsv_gives_the_sources_however_it_is_compressed(tmp_path: Path, name: str) -> None:
    data = read_data_file(write(tmp_path / name, TSV))
    assert data.texts == ["Good morning.", "Thanks!"]
    assert data.broken_lines == []


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.xz"])
def test_other_files_are_one_text_a_line(tmp_path: Path, name: str) -> None:
    data = read_data_file(write(tmp_path / name, "One.\nTwo\t2.\nThree.\u2028Still three."))
    assert data.texts == ["One.", "Two\t2.", "Three.\u2028Still three."]


def test_windows_line_ends_and_byte_order_mark_are_not_text(tmp_path: Path) -> None:
    data = read_data_file(write(tmp_path / "a.tsv", b"\xef\xbb\xbfOne.\tEins.\r\nTwo.\tZwei.\r\n"))
    assert data.texts == ["One.", "Two."]


def test_broken_lines_are_left_out_and_numbered(tmp_path: Path) -> None:
    lines = [b"no tab", b"One.\tEins.", b"\tno source", b"", b"bad \xff\tutf-8", b"Two.\tZwei.\tthird column"]
    data = read_data_file(write(tmp_path / "a.tsv", b"\n".join(lines)))
    assert data.texts == ["One.", "Two."]
    assert data.broken_lines == [1, 3, 4, 5]


@pytest.mark.parametrize("content", ["", "\n \n", "\t\n"])
def test_file_without_a_text_is_an_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(DataError, match="no line of"):
        read_data_file(write(tmp_path / "a.txt", content))


def test_a_tsv_file_without_a_tab_is_an_error_that_says_so(tmp_path: Path) -> None:
    said = r"has a tab; lines of text alone need another suffix than \.tsv"
    with pytest.raises(DataError, match=f"^no line of {tmp_path / 'a.tsv'} {said}$"):
        read_data_file(write(tmp_path / "a.tsv", "One.\nTwo.\n"))
    with pytest.raises(DataError, match=r"holds a text$"):
        read_data_file(write(tmp_path / "a.tsv", ""))


def test_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"^cannot read {tmp_path / 'a.tsv'}: No such file or directory$"):
        read_data_file(tmp_path / "a.tsv")


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
@pytest.mark.parametrize("keep", [0.5, 0.9])
def test_file_cut_short_is_an_error(tmp_path: Path, suffix: str, keep: float) -> None:
    path = write(tmp_path / f"a.tsv{suffix}", TSV)
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    with pytest.raises(DataError, match="cannot read"):
        read_data_file(path)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_file_that_is_not_compressed_as_named_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text(TSV)
    with pytest.raises(DataError, match="cannot read"):
        read_data_file(path)


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1), st.integers(1, 10))
def test_requests_hold_every_text_in_order_and_are_full(texts: list[str], size: int) -> None:
    template = translation_pb2.TranslateTextRequest(model="en-de", source_language_code="en")
    requests = [
        translation_pb2.TranslateTextRequest.FromString(request)
        for request in serialize_requests(texts, size, template)
    ]
    contents = [text for request in requests for text in request.contents]
    assert contents[: len(texts)] == texts
    assert [len(request.contents) for request in requests] == [size] * -(-len(texts) // size)
    assert {(request.model, request.source_language_code) for request in requests} == {("en-de", "en")}
