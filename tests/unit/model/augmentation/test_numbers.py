"""Numbers with a point and with a comma: others on both sides, and the same."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.augmentation.numbers import numbers

OTHER_WAY = str.maketrans(",.", ".,")


@given(
    amount=st.integers(1, 9_999_999),
    has_decimals=st.booleans(),
    sign=st.sampled_from("$€£"),
    is_german_first=st.booleans(),
    seed=st.integers(),
)
def test_both_sides_have_the_same_other_amount(
    amount: int, has_decimals: bool, sign: str, is_german_first: bool, seed: int
) -> None:
    number = f"{amount / 100:,.2f}" if has_decimals else f"{amount:,}"
    english, german = f"It costs {sign}{number}.", f"Es kostet {number.translate(OTHER_WAY)} {sign}."
    if is_german_first:
        german, english = numbers((german, english), Random(seed))
    else:
        english, german = numbers((english, german), Random(seed))
    found = re.fullmatch(r"It costs ([$€£])(\d{1,3}(?:,\d{3})*(?:\.\d\d)?)\.", english)
    assert found
    assert german == f"Es kostet {found[2].translate(OTHER_WAY)} {found[1]}."


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("It costs $5.", "Es kostet 6 $."),
        ("It costs $5.", "Es kostet $5."),
        ("It costs $5.", "Es kostet fünf Dollar."),
        ("It costs 5 dollars.", "Es kostet 5 Dollar."),
        ("Room 5 costs $5.", "Zimmer 5 kostet 5 $."),
        ("It costs $5-10.", "Es kostet 5-10 $."),
        ("It costs $5 or $6.", "Es kostet 5 $."),
        ("Version 1.5", "Version 1.5"),
        ("Version 1.5.2", "Version 1.5.2"),
        ("At 6.30", "Um 18.30"),
        ("Room 12", "Zimmer 12"),
        ("It is 1,200 m.", "Es sind 1200 m."),
        ("It costs $1,000.", "Es kostet 1,000 $."),
    ],
)
def test_a_pair_without_the_same_numbers_stays(english: str, german: str) -> None:
    assert numbers((english, german), Random(0)) == (english, german)
    assert numbers((german, english), Random(0)) == (german, english)


def test_each_of_several_numbers_changes_and_no_other() -> None:
    pair = ("Lot 7: was $8, now $5.50.", "Los 7: bisher 8 $, jetzt 5,50 $.")
    for english, german in {numbers(pair, Random(n)) for n in range(50)}:
        found = re.fullmatch(r"Lot 7: was ([$€£])([\d,.]+), now \1([\d,.]+)\.", english)
        assert found
        sign, first, second = found.groups()
        assert (
            german == f"Los 7: bisher {first.translate(OTHER_WAY)} {sign}, jetzt {second.translate(OTHER_WAY)} {sign}."
        )


@pytest.mark.parametrize("german", ["Es kostet 5 Dollar.", "Es kostet 5 US-$.", "Es kostet 5 US$."])
def test_a_sign_that_only_one_side_has_alone_stays(german: str) -> None:
    drawn = [numbers(("It costs $5.", german), Random(n)) for n in range(50)]
    assert {re.sub(r"[\d,.]*\d", "5", side) for pair in drawn for side in pair} == {"It costs $5.", german}
    assert len(set(drawn)) > 40


@pytest.mark.parametrize(
    ("pair", "shape"),
    [
        (("It is 2.5 km.", "Es sind 2,5 km."), r"\d{1,3}\.\d"),
        (("It is 8.25%.", "Es sind 8,25 %."), r"\d{1,3}\.\d\d"),
        (("It has 1,250 files.", "Es hat 1.250 Dateien."), r"\d{1,3}(,\d{3})+"),
        (("It has 1,250.75 points.", "Es hat 1.250,75 Punkte."), r"\d{1,3}(,\d{3})+\.\d\d"),
        (("It costs $5m.", "Es kostet 5 Mio. $."), r"\d{1,3}"),
        (("It costs €5.5 million.", "Es kostet 5,5 Millionen €."), r"\d{1,3}\.\d"),
    ],
)
def test_a_number_keeps_its_shape(pair: tuple[str, str], shape: str) -> None:
    drawn = [numbers(pair, Random(n)) for n in range(50)]
    for english, german in drawn:
        number = re.search(r"\d[\d,.]*\d|\d", english)
        assert number
        assert re.fullmatch(shape, number[0])
        assert number[0].translate(OTHER_WAY) in german
    assert len(set(drawn)) > 40
