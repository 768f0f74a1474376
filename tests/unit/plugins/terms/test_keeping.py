from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.glossary import GlossaryEntry
from dragoman.tokenizer import Tokenizer
from plugins.terms.finding import Index
from plugins.terms.keeping import Keeper
from plugins.terms.placeholders import find_literals
from plugins.terms.terms import Terms
from service.terms import MAYBE_LITERAL
from tests.default_model import BUNDLE

TOKENIZER = Tokenizer.open(BUNDLE)
KEEPER = Keeper(TOKENIZER, "en")


def found(text: str, keeper: Keeper = KEEPER) -> list[str]:
    return [text[start:stop] for start, stop in keeper.find(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("My friend Иван lives here.", ["Иван"]),
        ("Иван Петров, Αθήνα and שלום", ["Иван Петров", "Αθήνα", "שלום"]),
        ("The word 日本 means Japan.", ["日本"]),
        ("Chișinău and Tiếng Việt", ["Chișinău", "Tiếng Việt"]),
        ("हिन्दी is a language", ["हिन्दी"]),
        ("I like it 👍🏽 and 👩‍👩‍👧‍👦.", ["👍🏽", "👩‍👩‍👧‍👦"]),
        ("It costs 10⁶ or 12.5³ dollars.", ["10⁶", "12.5³"]),
        ("15½ inches, ½ cup, 80 m², H₂O, E = mc²", ["15½", "½", "m²", "H₂O", "mc²"]),
        ("10⁻⁶ m s⁻¹, 1.000½", ["10⁻⁶", "s⁻¹", "1.000½"]),
        ("500 ₽, the ■ key, ▶◀, x ∈ M, yes|no", ["₽", "■", "▶◀", "∈", "|"]),
        ("1 ‰, 5′ 7″, ‹a› – “b” … c‑d", ["‰", "′", "″"]),
        ("x = ∞, 8 ÷ 2, ¿a?, b · c, ¶ 5, ¦ ¨ ❶ of \ufffd", ["∞", "÷", "¿", "·", "¶", "¦ ¨ ❶", "\ufffd"]),
        ("Microsoft® Windows™ and ®", ["Microsoft® Windows™", "®"]),
        ("٣٤٥ or ५०० rupees", ["٣٤٥", "५००"]),
        ("the author says¹ so, and the² too", []),  # numbers of notes
        ("5 µm and 3 μs", ["µm", "μs"]),  # the sign of micro, and the letter
        ("I donʼt know", []),
        ("für schöne Äpfel", []),  # letters and marks, of which the tokenizer makes one character
        ("Łódź, Dvořák, naïve café in Tōkyō, £5, 20 °C, a → b, x ≥ y, „so“ – …", []),  # Latin, and signs
        ("Slavoj Žižek, Simões, Dvořáks and Šimůnek", ["Žižek", "Simões", "Šimůnek"]),
        ("Anna`s Auto und Peter`s, `cat' and `dog', ``Hello'' and ``so''", []),
        ("Die 70er/80er/90er-Jahre, 1st/2nd/3rd/4th grade, happy --and -I think- tired, 2024-11-29-01", []),
        (
            "00:1A:2B:3C:4D:5E, da39a3ee5e6b4b0d3255bfef95601890afd80709",
            ["00:1A:2B:3C:4D:5E", "da39a3ee5e6b4b0d3255bfef95601890afd80709"],
        ),
        ("The \ue8b8\ue8b9 icon, the 「名」 and《so》, 5〜10", ["\ue8b8\ue8b9", "「", "名", "」", "《", "》", "〜"]),
        ("ﬁnd １２ Ⅳ", []),  # the tokenizer makes plain letters and digits of them
        ("Straße", []),
        (
            "Write to Ann.Lee+x@example.org or see https://example.org/a?b=Иван, www.example.de.",
            ["Ann.Lee+x@example.org", "https://example.org/a?b=Иван", "www.example.de"],
        ),
        ("Dear ____, this is __", ["____"]),
        ("Set MAX_SIZE and timeout_s, call pg_query() and __init__", ["MAX_SIZE", "timeout_s", "pg_query"]),
        ("Send report.pdf, not the conf. or e.g. now. #travel, C#, &#8734; and #1", ["report.pdf", "#travel"]),
        ("From 13.06.2026 to 1.7.2026, not 1.2.3 or 10.000.000 or 3.1415", ["13.06.2026", "1.7.2026"]),
        ("Use SAVE20, A4 and BMW320d in 2026", ["SAVE20"]),
        ("DE14918977260310555940, 123456789012, 0.123456789012", ["DE14918977260310555940", "123456789012"]),
        ("550e8400-e29b-41d4-a716-446655440000 mid-1990s-style", ["550e8400-e29b-41d4-a716-446655440000"]),
        ("console.log(x) in Node.js, main.js, GitHub and localStorage", ["main.js", "localStorage"]),
        (
            "Run `git add -p`, --dry-run or -v, then getName() in the toString-Methode",
            ["`git add -p`", "--dry-run", "-v", "getName()"],
        ),
        ("Be- und -entladen, -egg, a - b, eBay", []),
        ("@ann_b wrote to @Bob. We met @ noon, _really_.", ["@ann_b", "@Bob"]),
        ("", []),
    ],
)
def test_what_the_default_model_has_no_pieces_for(text: str, words: list[str]) -> None:
    assert found(text) == words


@pytest.mark.parametrize(("language", "words"), [("en", ["日本"]), ("zh-Hans", []), ("ja", [])])
def test_a_model_that_reads_such_a_script_reads_its_characters(language: str, words: list[str]) -> None:
    assert found("The word 日本 means Japan.", Keeper(TOKENIZER, language)) == words


@pytest.mark.parametrize(
    ("source", "target", "text", "form"),
    [
        ("de", "en-US", "Es kostet 2.500.000,50 Euro.", "2,500,000.50"),
        ("en", "de", "It costs 2,500,000 euros.", "2.500.000"),
        ("de", "en", "Am 13.06.2026 kam er.", "13.06.2026"),
    ],
)
def test_a_large_number_has_the_signs_of_the_target_language(source: str, target: str, text: str, form: str) -> None:
    [match] = Keeper(TOKENIZER, source, target)(None).find(text)
    assert (match.kept, match.forms) == (form in text, (form,))


@pytest.mark.parametrize(("source", "target"), [("de", "fr"), ("en", "en"), ("", "")])
def test_it_is_left_to_models_of_other_languages(source: str, target: str) -> None:
    assert not [*Keeper(TOKENIZER, source, target)(None).find("2.500.000 and 2,500,000")]


def test_an_address_of_the_internet_is_no_number() -> None:
    assert not [*Keeper(TOKENIZER, "de", "en")(None).find("192.168.100.200 und 10.100.200.255, 1.500")]


@pytest.mark.parametrize(("language", "words"), [("de-AT", ["Šimůnek"]), ("cs", []), ("", [])])
def test_a_model_that_reads_such_letters_reads_names_with_them(language: str, words: list[str]) -> None:
    assert found("Karel Šimůnek", Keeper(TOKENIZER, language)) == words


@given(st.text(st.sampled_from("abswjB#.@:/-1_ `()"), max_size=24))
@example("See example.com/account")
@example("A-b.js")
def test_no_literal_lacks_the_mark_that_a_text_is_searched_for_first(text: str) -> None:
    assert MAYBE_LITERAL.search(text) or not list(find_literals(text, "."))


@given(st.text(st.sampled_from("ab .-1,²½Иё日👍🏽■|٣\u200d\u0301"), max_size=12))
def test_places_are_in_order_and_apart(text: str) -> None:
    spans = list(KEEPER.find(text))
    assert all(start < stop for start, stop in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


@pytest.mark.parametrize("piece", ["²", "1.1²", "И", "日", "👍", "👍🏽\u200d", "a\u0301", "1.", "Иван "])
def test_each_character_is_looked_at_a_bounded_number_of_times(piece: str) -> None:
    looks = 0

    class Counted(str):
        __slots__ = ()

        def __getitem__(self, place) -> str:
            nonlocal looks
            looks += 1
            return super().__getitem__(place)

    text = Counted("word" + piece * 2_000)
    list(KEEPER.find(text))
    assert looks < 10 * len(text)


def test_terms_of_the_request_come_first() -> None:
    asked = Terms([Index([GlossaryEntry("Иван", ("Johann",)), GlossaryEntry("km²", ("Quadratkilometer",))])])
    text = "Иван Петров has 5 km² and 5 m²."
    found = KEEPER(asked).find(text)
    assert [match.forms for match in found] == [("Johann",), ("Петров",), ("Quadratkilometer",), ("m²",)]
