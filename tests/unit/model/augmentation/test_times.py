"""Times of twelve and of twenty-four hours: others on both sides, and the same."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.clock import TWELVE_HOURS, in_24_hours
from model.augmentation.times import times


@given(
    hour=st.integers(0, 23), minute=st.none() | st.integers(0, 59), is_german_first=st.booleans(), seed=st.integers()
)
def test_both_sides_have_the_same_other_time(hour: int, minute: int | None, is_german_first: bool, seed: int) -> None:
    minutes = "" if minute is None else f":{minute:02d}"
    english = f"See you at {(hour - 1) % 12 + 1}{minutes} {'ap'[hour >= 12]}.m."
    german = f"Bis {hour}{minutes} Uhr."
    if is_german_first:
        german, english = times((german, english), Random(seed))
    else:
        english, german = times((english, german), Random(seed))
    time = TWELVE_HOURS.search(english)
    assert time
    assert german == f"Bis {in_24_hours(time)} Uhr."
    assert english == f"See you at {time[0]}"
    assert english.endswith(".")


def test_each_hour_is_drawn() -> None:
    drawn = [times(("It begins at 3 p.m. today.", "Es beginnt heute um 15 Uhr."), Random(seed)) for seed in range(500)]
    assert {int(german.split()[4].split(":")[0]) for _, german in drawn} == set(range(24))
    assert any("12:" in english and " 0:" in german for english, german in drawn)


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("At 4 p.m.", "Um 4 Uhr nachmittags."),
        ("At 6 p.m.", "Um 18 Uhr im Zimmer 18."),
        ("Between 2 and 4 p.m.", "Zwischen 14 und 16 Uhr."),
        ("At 4 p.m. and at 5 p.m.", "Um 16 Uhr und um fünf."),
        ("At 4 p.m. and at 4 p.m.", "Um 16 Uhr."),
        ("At 16:00", "Um 16 Uhr"),
        ("At 5 at the station", "Um 5 am Bahnhof"),
        ("At half past two.", "Um halb zwei."),
        ("At half past two or half past three.", "Um halb drei oder halb vier."),
        ("At half past two.", "Um halb drei Uhr morgens."),
        ("At a quarter past seven.", "Um viertel acht."),
    ],
)
def test_a_pair_without_the_same_times_stays(english: str, german: str) -> None:
    assert times((english, german), Random(0)) == (english, german)
    assert times((german, english), Random(0)) == (german, english)


def test_each_of_several_times_changes_and_no_other_number() -> None:
    drawn = [
        times(("Ward 9: 8 a.m. to 5:30 pm. Call 16.", "Station 9: 8 bis 17:30 Uhr. Ruf 16."), Random(n))
        for n in range(50)
    ]
    for english, german in drawn:
        clock = [in_24_hours(time) for time in TWELVE_HOURS.finditer(english)]
        assert german == f"Station 9: {clock[0]} bis {clock[1]} Uhr. Ruf 16."
        assert english.startswith("Ward 9: ")
        assert english.endswith(". Call 16.")
    assert len({german for _, german in drawn}) > 40


def test_half_an_hour_is_named_by_the_next_hour_in_german() -> None:
    hours = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    german_hours = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"]
    pair = ("Half past two, or later?", "Halb drei oder später?")
    drawn = {times(pair, Random(n)) for n in range(1000)}
    for english, german in drawn:
        assert times((german, english), Random(0))[::-1] == times((english, german), Random(0))
        past, _, hour = english.removesuffix(", or later?").rpartition(" ")
        kind, _, german_hour = german.removesuffix(" oder später?").rpartition(" ")
        number = hours.index(hour)
        if past == "Half past":
            assert (kind, german_hour) == ("Halb", german_hours[(number + 1) % 12])
        else:
            assert (past, kind) in (("A quarter past", "Viertel nach"), ("A quarter to", "Viertel vor"))
            assert german_hour == german_hours[number]
    assert len(drawn) == 36


def test_a_half_in_the_middle_is_small_in_german() -> None:
    drawn = {times(("At a quarter to two.", "Um Viertel vor zwei."), Random(n))[1] for n in range(300)}
    assert {german.split()[1] for german in drawn} == {"halb", "Viertel"}
