import subprocess
import sys

import pytest

from dragoman.documents import formats
from dragoman.documents.formats import SUFFIXES, format_of, installed_suffixes, read_document


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


_WITHOUT_LIBRARIES = """
import sys
sys.modules.update(dict.fromkeys(("lxml", "markdown_it", "polib")))
from dragoman.documents.formats import SUFFIXES, installed_suffixes, read_document
for suffix in SUFFIXES:
    try:
        read_document("a" + suffix, b"")
    except ModuleNotFoundError:
        continue
    except ValueError:
        pass
    assert suffix in installed_suffixes(), suffix
print(*installed_suffixes())
"""


def test_the_formats_are_those_whose_libraries_are_installed() -> None:
    assert installed_suffixes() == list(SUFFIXES)
    run = subprocess.run([sys.executable, "-c", _WITHOUT_LIBRARIES], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [".srt", ".vtt", ".txt", ".html", ".htm"]
