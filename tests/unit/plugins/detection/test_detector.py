"""Languages of texts, by the real classifier."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.detection.detector import LanguageDetector
from service.text.detection import COMMON, LOOKED_AT, CandidateLanguages, Guess, agree, most_frequent

SENTENCES = {
    "en": "The train leaves the station at eight o'clock.",
    "de": "Der Zug fährt um acht Uhr vom Bahnhof ab.",
    "fr": "Le train quitte la gare à huit heures.",
    "ru": "Поезд отправляется со станции в восемь часов.",
    "ja": "電車は八時に駅を出ます。",
    "ar": "يغادر القطار المحطة في الساعة الثامنة.",
}
TONGUES = CandidateLanguages(("en",), COMMON)


@pytest.fixture(scope="module")
def detector() -> LanguageDetector:
    return LanguageDetector()


def test_the_model_is_read_at_the_first_use_only() -> None:
    detector = LanguageDetector()
    assert not detector.is_loaded
    assert detector.rank(SENTENCES["de"], TONGUES)[0].language == "de"
    assert detector.is_loaded


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_in_its_language_and_confidences_are_probabilities(detector, language: str) -> None:
    ranking = detector.rank(SENTENCES[language], TONGUES)
    assert ranking[0].language == language
    assert ranking[0].confidence > 0.9
    assert sum(guess.confidence for guess in ranking) == pytest.approx(1)
    assert ranking == sorted(ranking, key=lambda guess: -guess.confidence)
    assert {guess.language for guess in ranking} == set(COMMON)


@pytest.mark.parametrize("text", ["", " \n\t", "123 456", "?!...", "\x00\x01\x07", "😀🎉", "<br><hr>"])
def test_what_says_nothing_has_no_language(detector, text: str) -> None:
    assert detector.rank(text, TONGUES, html="<" in text) == []
    # A language that the classifier has twice, in two scripts, is no exception.
    assert detector.rank(text, CandidateLanguages(("sr",), ("en",)), html="<" in text) == []


def test_languages_are_called_as_they_are_served(detector) -> None:
    candidates = CandidateLanguages(("zh-Hans", "en-GB", "en"), ("nb", "xx"))
    ranking = detector.rank("我们明天去北京。", candidates)
    assert ranking[0].language == "zh-Hans"
    assert {guess.language for guess in ranking} == {"zh-Hans", "en", "nb"}  # the most general of English
    assert detector.rank("Toget går klokken åtte.", candidates)[0].language == "nb"


def test_an_expected_language_is_taken_where_little_is_known(detector) -> None:
    [of_english, of_spanish] = (detector.rank("Login", CandidateLanguages((code,), COMMON))[0] for code in ("en", "es"))
    assert (of_english.language, of_spanish.language) == ("en", "es")
    assert detector.rank(SENTENCES["fr"], TONGUES)[0].language == "fr"


@pytest.mark.parametrize("text", [" Hello\n", "<b>Hello</b>", "\t\r\n<p>\n<b>Hello</b>&nbsp;</p>"])
def test_blanks_and_tags_around_a_short_text_say_nothing(detector, text: str) -> None:
    assert detector.rank(text, TONGUES, html="<" in text) == detector.rank("Hello", TONGUES)
    assert detector.rank(f"{text}{text}", TONGUES, html="<" in text) == detector.rank("Hello Hello", TONGUES)


def test_of_html_tags_and_scripts_are_not_looked_at(detector) -> None:
    html = (
        '<div class="the article about the weather"><style>body {color: red}</style><!-- this is the title -->'
        "<b>Bahnhof</b><script>window.onload = function() { return the.weather }</script> und Flughafen</div>"
    )
    assert detector.rank(html, TONGUES)[0].language == "en"
    assert detector.rank(html, TONGUES, html=True)[0].language == "de"
    assert detector.rank("Gr&uuml;&szlig;e", TONGUES, html=True) == detector.rank("Grüße", TONGUES)
    open_script = "<p>Guten Abend</p><script>" + "the weather is fine; " * 500
    assert detector.rank(open_script, TONGUES, html=True)[0].language == "de"


@pytest.mark.parametrize("filler", ["a", "<", "<script", "&", "\x00", "\U0001f600", "ñ", "<!--", "İ"])
@pytest.mark.parametrize("html", [False, True])
def test_the_end_of_a_long_text_changes_nothing(detector, filler: str, html: bool) -> None:
    text = filler * 1_000_000
    assert detector.rank(text, TONGUES, html=html) == detector.rank(text[: 4 * LOOKED_AT], TONGUES, html=html)


@given(st.text(max_size=200), st.booleans())
def test_any_text_has_probabilities_or_none(detector, text: str, html: bool) -> None:
    ranking = detector.rank(text, TONGUES, html=html)
    assert not ranking or sum(guess.confidence for guess in ranking) == pytest.approx(1)


def test_threads_share_it_from_the_first_moment_on() -> None:
    detector, together = LanguageDetector(), threading.Barrier(4)

    def ranked(language: str) -> list[list[Guess]]:
        together.wait()
        return [detector.rank(SENTENCES[language], CandidateLanguages((code,), COMMON)) for code in SENTENCES] * 10

    languages = ["en", "de", "fr", "ru"]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(ranked, languages))
    for language, rankings in zip(languages, found, strict=True):
        assert (
            rankings
            == [detector.rank(SENTENCES[language], CandidateLanguages((code,), COMMON)) for code in SENTENCES] * 10
        )


def test_a_short_text_follows_the_others_and_a_long_one_does_not(detector) -> None:
    contents = [SENTENCES["de"], "Chat", "42", SENTENCES["fr"], SENTENCES["de"]]
    rankings = [detector.rank(text, CandidateLanguages(("de", "fr"), COMMON)) for text in contents]
    found = agree(rankings, list(map(len, contents)))
    assert [guess and guess.language for guess in found] == ["de", "de", None, "fr", "de"]
    assert found[1] is not None
    assert found[1].confidence < 0.5


@given(st.integers(0, 5))
def test_texts_that_say_nothing_change_nothing(detector, blanks: int) -> None:
    contents = [SENTENCES["en"], "Chat"] + [" "] * blanks
    rankings = [detector.rank(text, TONGUES) for text in contents]
    lengths = list(map(len, contents))
    assert agree(rankings, lengths) == agree(rankings[:2], lengths[:2]) + [None] * blanks


def test_the_most_frequent_language_and_the_first_of_equals() -> None:
    guesses = [Guess(language, 0.9) for language in ("fr", "de", "de", "fr")]
    assert most_frequent(guesses, {"de", "fr"}, "en") == "fr"
    assert most_frequent([None, *guesses[1:3]], {"de", "fr"}, "en") == "de"
    assert most_frequent([None], {"de", "fr"}, "en") == "en"
    assert most_frequent(guesses, {"de"}, "en") == "de"
