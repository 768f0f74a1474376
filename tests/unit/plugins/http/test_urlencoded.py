"""Forms that are percent-encoded, beside Python's own reader of them."""

import tracemalloc
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidRequestError
from plugins.http import urlencoded

ODD = st.lists(st.sampled_from(["%", "%4", "%41", "%c3%a9", "%C3", "=", "==", "&", "+", "\n", "\r", "_", "a", "ß"]))


@given(st.lists(st.tuples(st.text(), st.text())))
def test_what_urllib_writes_is_read(fields: list[tuple[str, str]]) -> None:
    assert urlencoded.read(urlencode(fields).encode(), 1_000) == fields


@pytest.mark.parametrize("slice_bytes", [3, 4, 5, 65_536])
def test_what_urllib_reads_is_read_in_slices_of_any_size(slice_bytes: int, monkeypatch) -> None:
    monkeypatch.setattr(urlencoded, "_SLICE_BYTES", slice_bytes)

    @given(ODD)
    def check(pieces: list[str]) -> None:
        text = "".join(pieces)
        try:
            expected = parse_qsl(text, keep_blank_values=True, errors="strict")
        except UnicodeDecodeError:
            with pytest.raises(InvalidRequestError, match="not UTF-8"):
                urlencoded.read(text.encode(), 1_000)
        else:
            assert urlencoded.read(text.encode(), 1_000) == expected

    check()


def test_too_many_fields_are_refused() -> None:
    assert len(urlencoded.read(b"a=1&a=2&a=3", 3)) == 3
    with pytest.raises(InvalidRequestError, match="at most 2 parameters"):
        urlencoded.read(b"a=1&a=2&a=3", 2)


@pytest.mark.parametrize("piece", [b"%41", b"%", b"=", b"%%41", b"a+"])
def test_a_form_takes_memory_in_proportion_to_its_size(piece: bytes) -> None:
    body = b"q=" + piece * (1_000_000 // len(piece))
    tracemalloc.start()
    try:
        urlencoded.read(body, 10)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(body)
