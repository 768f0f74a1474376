"""What is counted of translations: what was lost, and not what a good translation changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.quality.counts import Counted, count


def lost(field: str, source: str, translation: str, languages: str = "en de") -> float:
    return getattr(count(source, translation, *languages.split()), field)


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("It costs 1,234.5 euros.", "Es kostet 1.234,5 Euro."),
        ("It costs 1,234,567 euros.", "Es kostet 1 234 567 Euro."),
        ("It costs 12,500 francs.", "Es kostet 12'500 Franken."),
        ("There are 4.5 million of them.", "Davon gibt es 4,5 Millionen."),
        ("On 12/05/2026 at 3:15.", "Am 05.12.2026 um 3:15 Uhr."),
        ("We saw 3 cats and 12 dogs.", "Wir sahen drei Katzen und zwölf Hunde."),
        ("He came 2nd.", "Er wurde Zweiter."),
        ("The 21st day", "Der 21. Tag"),
        ("Version 2.10.1 is out.", "Die Version 2.10.1 ist da."),
        ("On 03/05/2026 at 06:00.", "Am 3.5.2026 um 6:00 Uhr."),
        ("The year ٢٠٢٦", "Das Jahr 2026"),
        ("At 6:45 p.m., not at 7 a.m.", "Um 18:45 Uhr, nicht um 7 Uhr."),
        ("At 7 o'clock. It ended at 6 PM. 300 came.", "Um 7 Uhr. Um 18 Uhr war Schluss. 300 kamen."),
        ("The show at 12:30am", "Die Vorstellung um 0.30 Uhr"),
        ("From 2 to 4:15 p.m., then at 6.", "Von 14 bis 16:15 Uhr, dann um 18 Uhr."),
        ("Closed from noon to 2 p.m.", "Von 12 bis 14 Uhr geschlossen."),
        ("From 6:30 to 10 a.m.", "Von 6.30 bis 10 Uhr"),
        ("Since 2:49:50 PM", "Seit 14:49:50 Uhr"),
        ("The label says 4:00 PM.", "Auf dem Schild steht 4:00 PM."),
        ("We met at 4 p.m. in Rome.", "Wir trafen uns um 4 Uhr nachmittags in Rom."),
    ],
)
def test_a_number_may_be_written_in_another_way(source: str, translation: str) -> None:
    counted = count(source, translation, "en", "de")
    assert counted.numbers_lost == 0
    assert counted.numbers_added == 0
    turned = count(translation, source, "de", "en")
    assert (turned.numbers_lost, turned.numbers_added) == (0, 0)


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("Your order #48213 has been shipped.", "Dein Befehl wurde 1483-Aufts Schiff errichtet.", (1, 1)),
        ("Room 17 and room 18", "Zimmer 17 und Zimmer 17", (1, 1)),
        ("It is 25 degrees.", "Es ist kalt.", (1, 0)),
        ("It is 5 degrees.", "Es ist kalt.", (1, 0)),
        ("It is 0.5 percent.", "Es sind 5,5 Prozent.", (1, 1)),
        ("To DE02 1203 0000 0000 2020 51.", "An DE02 1203 0000 000 2020 51.", (1, 1)),
        ("Call 0171 2345678.", "Ruf 171 2345678 an.", (1, 1)),
        ("20 30 40 50 60", "", (3, 0)),
        ("At 6:45 p.m.", "Um 14:45 Uhr.", (1, 1)),
        ("At 2:15 p.m.", "Um 2:15 Uhr.", (1, 1)),
        ("Tomorrow at 4 p.m.", "Morgen um 4 Uhr.", (1, 1)),
        ("At 4 p.m. " + "1" * 5_000, "Um 16 Uhr", (1, 0)),
        ("At 12:05 AM", "Um 12:05 Uhr", (1, 1)),
    ],
)
def test_a_lost_number_counts(source: str, translation: str, expected: tuple[int, int]) -> None:
    counted = count(source, translation, "en", "de")
    assert (counted.numbers_lost, counted.numbers_added) == expected


def test_a_small_number_counts_only_where_its_word_is_known() -> None:
    assert lost("numbers_lost", "I have 3 cats.", "Mam koty.", "en pl") == 0
    assert lost("numbers_lost", "I have 33 cats.", "Mam koty.", "en pl") == 1
    assert lost("numbers_added", "Mam trzy koty.", "I have 3 cats.", "pl en") == 0


@pytest.mark.parametrize("translation", ["à 18 h 45", "à 6 h 45 du soir"])
def test_a_time_may_have_12_hours_where_words_for_halves_of_the_day_are_not_known(translation: str) -> None:
    assert count("at 6:45 p.m.", translation, "en", "fr")[:2] == (0, 0)
    assert count(translation, "at 6:45 p.m.", "fr", "en")[:2] == (0, 0)


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("Run x86_64 on v2.1-rc1 now.", "Führe nun x86_64 auf v2.1-rc1 aus.", 0),
        ("Run x86_64 on v2.1-rc1 now.", "Führe nun x86 auf v2.1 aus.", 2),
        ("It is 10km away, in the 1990s.", "Es ist 10 km weit weg, in den 1990ern.", 0),
    ],
)
def test_codes_stay_as_they_are(source: str, translation: str, expected: int) -> None:
    assert lost("codes_lost", source, translation) == expected


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("My name is Sarah Johnson.", "Mein Name ist Sarah Johnson.", 0),
        ("My name is Sarah Johnson.", "Mein Name ist Sarahon.", 1),
        ("I live in Australia.", "Ich lebe in Australien.", 0),
        ("She likes Tom's cats, not André's.", "Sie mag Toms Katzen, nicht Andres.", 0),
        ("They laughed. Then it rained.", "Sie lachten. Dann regnete es.", 0),
        ("How To Use It", "Die Verwendung", 0),
        ("I LIVE IN LEEDS", "Ich lebe in Leds", 0),
        ("I live in Manchester.", "Я живу в Манчестере.", 0),
    ],
)
def test_names_are_known_by_their_first_letters(source: str, translation: str, expected: int) -> None:
    assert lost("names_lost", source, translation) == expected


def test_capitals_say_nothing_in_german() -> None:
    assert lost("names_lost", "Da sitzt eine Katze.", "There is a cat.", "de en") == 0


@pytest.mark.parametrize("kept", ["{name}", "%s", "https://example.org/a?b=1", "a.b@example.org", "🎉", "${x}"])
def test_placeholders_and_addresses_stay_as_they_are(kept: str) -> None:
    assert lost("placeholders_lost", f"Take {kept} now.", f"Nimm jetzt {kept}.") == 0
    assert lost("placeholders_lost", f"Take {kept} now.", "Nimm es jetzt.") == 1
    assert lost("numbers_lost", f"Take {kept} now.", "Nimm es jetzt.") == 0


def test_repeats_and_length() -> None:
    assert lost("repeats", "It is cold.", "Es ist sehr sehr sehr kalt.") == 2
    assert lost("repeats", "a very, very long way", "ein sehr, sehr langer Weg") == 0
    assert lost("repeats", "Go away.", "geh weg geh weg") == 1
    assert count("a" * 40, "a" * 18).too_short == pytest.approx(0.693, abs=0.001)
    assert count("a" * 18, "a" * 40).too_long == pytest.approx(0.693, abs=0.001)
    assert lost("too_short", "I live in the city.", "我住在城里。", "en zh") < 0.2


def test_what_the_decoding_says_counts_too() -> None:
    counted = count("Go.", "Geh.", unfinished=True, unknown_pieces=7)
    assert (counted.unfinished, counted.unknown_pieces) == (1, 3)


WORDS = st.text(st.sampled_from("aB1 .,'’-@{}%🎉é中٣:/\n"), max_size=60) | st.text(max_size=40)


@given(WORDS, WORDS, st.sampled_from(["", "en", "de-AT", "zh"]), st.sampled_from(["", "en", "de-AT", "zh"]))
def test_every_text_can_be_counted(source: str, translation: str, one: str, other: str) -> None:
    counted = count(source, translation, one, other)
    assert all(0 <= value <= 20 for value in counted)


@given(WORDS)
def test_a_copy_has_lost_nothing(text: str) -> None:
    assert count(text, text) == Counted(*[0] * len(Counted._fields))


@pytest.mark.parametrize("unit", ["a1 ", "1,", "1 111 ", "Ab cd ", "{a} ", "a.1-", "x@y.zz "])
def test_long_texts_come_to_an_end(unit: str) -> None:
    counted = count(unit * 20_000, "")  # a pattern that went back and forth would take hours
    assert counted.too_short > 0
