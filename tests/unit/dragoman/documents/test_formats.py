import pytest

from dragoman.documents import formats
from dragoman.documents.formats import SUFFIXES, format_of, read_document


def test_the_suffix_says_the_format_in_any_case() -> None:
    assert format_of("a.PO") == format_of("b.pot") != format_of("c.srt")


@pytest.mark.parametrize("name", ["a.pdf", "a", "po", ".po"])
def test_another_suffix_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"must end in \.srt, .*is ") as raised:
        format_of(name)
    assert repr(name) in str(raised.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bytes_that_are_no_document_are_refused(suffix: str) -> None:
    with pytest.raises(ValueError, match=r"^is no|^is not|^has no"):
        read_document(f"a{suffix}", b"\xff\xfe\x00 no document")


def test_a_large_document_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(formats, "MAX_BYTES", 3)
    with pytest.raises(ValueError, match="must be at most 3 bytes"):
        read_document("a.srt", b"1234")
