import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.alignment.alignment import Alignment, words
from service.text.alignment import Side


def side(text: str, pieces: str = "") -> Side:
    """A text in pieces, given with bars between them; without, each word and each other character is one."""
    if not pieces:
        return Side(text, [piece.span() for piece in re.finditer(r"\w+|[^\w\s]", text)])
    spans, done = [], 0
    for piece in pieces.split("|"):
        start = text.index(piece, done)
        done = start + len(piece)
        spans.append((start, done))
    return Side(text, spans)


def attention(rows: str) -> np.ndarray:
    """A line for each token of the target, with a tenth for each token of the source."""
    return np.array([[int(each) / 10 for each in row] for row in rows.split()], np.float32)


def texts(of: Side, spans: list[tuple[int, int]]) -> list[str]:
    return [of.text[start:stop] for start, stop in spans]


@pytest.mark.parametrize(
    ("text", "pieces", "found"),
    [
        ("It's 9 o'clock, Tom.", "", ["It", "s", "9", "o", "clock", "Tom"]),
        ("हिन्दी भाषा", "हि|न्दी|भाषा", ["हिन्दी", "भाषा"]),
        ("cafe\u0301s", "", ["cafe\u0301s"]),
        ("東京は大きい。Hi", "東京|は|大き|い|。|Hi", ["東京", "は", "大き", "い", "Hi"]),
        ("iPhoneを買う", "iPhone|を買|う", ["iPhone", "を買", "う"]),
        ("น้ำดี", "น|้|ำ|ด|ี", ["น้", "ำ", "ดี"]),
        ("_good day._ __ a_b _", "", ["_good", "day", "a_b"]),
        ("...", "", []),
        ("", "", []),
    ],
)
def test_words(text: str, pieces: str, found: list[str]) -> None:
    of = side(text, pieces)
    assert texts(of, words(of)) == found


def test_links_join_words_that_mostly_have_to_do_with_each_other() -> None:
    source, target = side("I saw him today ."), side("Heute sah ich ihn .")
    found = Alignment(attention("00090 09000 90000 12600 00009"), source, target)
    assert [
        (texts(source, [link.source])[0], texts(target, [link.target])[0], round(link.weight, 2))
        for link in found.links()
    ] == [("today", "Heute", 1.0), ("saw", "sah", 0.9), ("I", "ich", 0.95), ("him", "ihn", 0.82)]


def test_the_attention_of_all_pieces_of_a_word_counts() -> None:
    source, target = side("two trains", "two|tra|ins"), side("zwei Züge", "zwei|Z|üge")
    [row] = Alignment(attention("900 018 090"), source, target).weights[1:]
    assert row.round(2).tolist() == [0.0, 1.0]


def test_attention_to_what_is_no_word_does_not_count() -> None:
    found = Alignment(attention("190 009"), side("a . b"), side("A B"))
    assert found.weights.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_word_that_attends_to_no_word_has_no_link() -> None:
    found = Alignment(attention("09 90"), side("a ."), side("A B"))
    assert [(link.source, link.target) for link in found.links()] == [((0, 1), (2, 3))]


@pytest.mark.parametrize(
    ("words_of_source", "translation"),
    [
        ("red", "rouge"),
        ("the red wine", "le vin rouge"),
        ("red wine here", "vin rouge ici"),
        ("e", "le"),  # in the, the first word
        ("...", None),
    ],
)
def test_the_target_of_some_words(words_of_source: str, translation: str | None) -> None:
    source, target = side("the red wine here..."), side("le vin rouge ici.")
    found = Alignment(attention("9000000 0090000 0900000 0009000 0000090"), source, target)
    start = source.text.index(words_of_source)
    span = found.target_of(start, start + len(words_of_source))
    assert (span and texts(target, [span])[0]) == translation


def test_the_target_of_words_that_went_apart_is_where_most_of_them_are() -> None:
    source, target = side("got up late"), side("stand heute sehr spät endlich auf")
    found = Alignment(attention("800 000 009 009 000 080"), source, target)
    assert found.target_of(0, 6) == (0, 5)
    assert found.target_run(0, 2, np.array([False, True, True, True, True, True])) == (5, 6)
    assert found.target_run(0, 2, np.zeros(6, np.bool_)) is None


@st.composite
def sides(draw: st.DrawFn) -> Side:
    text = draw(st.text(st.sampled_from("ab1 .日本の\u0301é"), max_size=20))
    cuts = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=8))})
    return Side(text, list(pairwise(cuts)))


@given(sides(), sides(), st.randoms(use_true_random=False))
def test_all_letters_are_in_one_word_and_weights_are_shares(source: Side, target: Side, random) -> None:
    rows = [[random.random() for _ in source.spans] for _ in target.spans]
    found = Alignment(np.array(rows, np.float32).reshape(len(target.spans), len(source.spans)), source, target)
    for of, spans in ((source, found.source_words), (target, found.target_words)):
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
        inside = {place for start, stop in spans for place in range(start, stop)}
        assert inside >= {place for place, character in enumerate(of.text) if character.isalnum()}
        assert not any(of.text[place] in " ." for place in inside)
    assert found.weights.shape == (len(found.target_words), len(found.source_words))
    assert ((found.weights >= 0) & (found.weights <= 1 + 1e-6)).all()
    span = found.target_of(0, len(source.text))
    assert (span is None) == (not found.weights.size)


def test_spans_count_as_words_with_all_that_overlaps_them() -> None:
    both = side("a@b ok {}")
    alignment = Alignment(np.eye(len(both.spans), dtype=np.float32), both, both)
    assert texts(both, alignment.source_words) == ["a", "b", "ok"]
    joined = alignment.joined([(0, 2)], [(0, 3), (7, 9)])
    assert texts(both, joined.source_words) == ["a@", "b", "ok"]
    assert texts(both, joined.target_words) == ["a@b", "ok", "{}"]
    assert joined.target_run(0, 2) == (0, 1)
    assert texts(both, alignment.target_words) == ["a", "b", "ok"]
