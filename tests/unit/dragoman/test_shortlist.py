"""Shortlists against Marian's own way to find candidates, written down as it is there."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.shortlist import Shortlist
from tests.marian_bin import shortlist

FILE = Path("lex.bin")
PIECES = 40


def as_marian(
    source: list[int], translations: list[list[int]], first: int, target_pieces: int, *, joint: bool
) -> list[int]:
    """`BinaryShortlistGenerator::generate` of src/data/shortlist.cpp, of one sentence."""
    chosen = [id_ < first for id_ in range(target_pieces)]
    for piece in source:
        if joint:
            chosen[piece] = True
        for id_ in translations[piece]:
            chosen[id_] = True
    count = sum(chosen)
    for id_ in range(first, target_pieces):
        if count % 8 == 0:
            break
        if not chosen[id_]:
            chosen[id_] = True
            count += 1
    return [id_ for id_ in range(target_pieces) if chosen[id_]]


@given(
    translations=st.lists(st.lists(st.integers(0, 99), max_size=6, unique=True), min_size=PIECES, max_size=PIECES),
    source=st.lists(st.integers(0, PIECES - 1), min_size=1, max_size=12),
    first=st.integers(0, 20),
    joint=st.booleans(),
)
def test_candidates_are_those_of_marian(
    translations: list[list[int]], source: list[int], first: int, joint: bool
) -> None:
    found = Shortlist(shortlist(translations, first, 6), FILE)
    found.check(PIECES, 100)
    expected = as_marian(source, translations, first, 100, joint=joint)
    assert found.candidates(source, 100, joint=joint).tolist() == expected


def test_a_small_vocabulary_may_be_used_up() -> None:
    found = Shortlist(shortlist([[3]] * 4, first=50), FILE)
    assert found.candidates([1, 2], 13, joint=True).tolist() == list(range(13))


@pytest.mark.parametrize(
    ("pieces", "said"),
    [((5, 100), "has 4 source pieces, the model 5"), ((4, 7), "has the id 7, the model 7 target pieces")],
)
def test_refuses_other_vocabularies(pieces: tuple[int, int], said: str) -> None:
    with pytest.raises(DataError, match=said):
        Shortlist(shortlist([[1, 2], [7], [], [0]]), FILE).check(*pieces)


WHOLE = shortlist([[1, 2], [7], [], [0]])


@given(cut=st.integers(0, len(WHOLE) - 1), tail=st.binary(max_size=9))
def test_refuses_what_is_cut_off_or_goes_on(cut: int, tail: bytes) -> None:
    for content in (WHOLE[:cut], WHOLE + tail + b"\0"):
        with pytest.raises(DataError, match=r"^lex.bin: "):
            Shortlist(content, FILE)


@given(at=st.integers(0, len(WHOLE) - 1), byte=st.integers(0, 255))
def test_a_changed_byte_gives_an_error_or_other_candidates(at: int, byte: int) -> None:
    try:
        found = Shortlist(WHOLE[:at] + bytes([byte]) + WHOLE[at + 1 :], FILE)
        found.check(4, 100)
    except DataError:
        return
    assert set(found.candidates([0, 1, 2, 3], 100, joint=True)) <= set(range(100))
