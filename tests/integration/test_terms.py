"""The default model searches for translations that hold given terms, among other segments."""

import re
from pathlib import Path

import pytest

from dragoman.bundle import Bundle, target_limit
from dragoman.glossary import GlossaryEntry
from plugins.offline.engine import OfflineEngine
from plugins.offline.texts import translate_offline
from plugins.terms.finding import Index
from plugins.terms.placeholders import find
from plugins.terms.terms import Terms
from service.constraints import Constraints
from service.decode import Decode, FinishReason
from service.options import Decoding, RequestOptions
from service.text.translator import Translator


def occurrences(term: str, text: str) -> int:
    """Count where a term stands in a text as whole words."""
    return len(re.findall(rf"(?<!\w){re.escape(term)}(?!\w)", text))


BUNDLE = Bundle.open(Path(__file__).parents[2] / "models" / "en-de" / "bundle")
TOKENIZER = BUNDLE.tokenizer()
# Of each sentence the terms, with their forms.
SENTENCES = {
    "The doctor bought a new car yesterday.": (("Ärztin", "Medizinerin"), ("Fahrzeug",)),
    "She reads a book every evening before she goes to sleep.": (("Roman",), ("zu Bett",)),
    "Tom took off his shirt.": (("Haus",), ("Haus",)),
    "The contract was signed in Berlin.": (("Vertragswerk",), ("Unterzeichnung",), ("Quixotranix",)),
    "Good morning.": (("Servus", "Servus, Servus"),),
}


def decode_of(source: str, forms: tuple[tuple[str, ...], ...], size: int = 4, *, repeats: bool = False) -> Decode:
    ids, manifest = TOKENIZER.encode(source), BUNDLE.manifest
    limit = target_limit(len(ids), manifest.max_target_tokens)
    constraints = None
    if forms:
        terms = tuple(tuple(tuple(TOKENIZER.encode_target(form)) for form in term) for term in forms)
        constraints = Constraints(terms, TOKENIZER.begins_word)
        limit += constraints.tokens
    decoding = Decoding(stops_at_repetition=repeats, beam_size=size, alternatives=2 if size > 1 else 0)
    return Decode([*ids, manifest.eos_id], limit, decoding=decoding, constraints=constraints)


@pytest.fixture(scope="module")
def engine() -> OfflineEngine:
    return OfflineEngine(BUNDLE, threads=1, slots=24)


@pytest.mark.parametrize("size", [2, 4, 8])
def test_every_alternative_holds_all_terms(engine: OfflineEngine, size: int) -> None:
    decodes = [decode_of(source, forms, size, repeats=True) for source, forms in SENTENCES.items()]
    others = [decode_of(source, (), other) for source in SENTENCES for other in (1, 3)]
    engine.decode([*decodes, *others])
    for decode, forms in zip(decodes, SENTENCES.values(), strict=True):
        assert decode.finish_reason is FinishReason.EOS
        assert len(decode.hypotheses) == 2
        for hypothesis in decode.hypotheses:
            text = TOKENIZER.decode(hypothesis.target_ids)
            for term in forms:
                assert sum(occurrences(form, text) for form in term) >= forms.count(term), text


def test_terms_that_the_model_says_anyway_change_nothing(engine: OfflineEngine) -> None:
    plain = decode_of("Tom took off his shirt.", ())
    engine.decode([plain])
    words = TOKENIZER.decode(plain.target_ids).rstrip(".").split()
    constrained = decode_of("Tom took off his shirt.", ((words[-1],), (words[0],)))
    engine.decode([constrained])
    assert constrained.target_ids == plain.target_ids
    assert constrained.log_probability == plain.log_probability


@pytest.mark.parametrize(
    "text",
    [
        "What kind of work do {x} like?",
        "By investing wisely, {x} accumulated a fortune.",
        "Why doesn't {x} and {y} want to help Mary?",
        "{x} was going to be there, too, and {y} wasn't a great player.",
        "I thought {x}, {y}, {z} and {n} was a Canadian.",
    ],
)
def test_a_placeholder_is_not_written_once_more_where_the_model_would(engine: OfflineEngine, text: str) -> None:
    translator = Translator(BUNDLE.manifest, TOKENIZER)
    options = RequestOptions(terms=Terms((), find))
    [result] = translate_offline(translator, engine, [text], options)
    placeholders = [word for word in ("{x}", "{y}", "{z}", "{n}") if word in text]
    assert [result.text.count(each) for each in placeholders] == [1] * len(placeholders), result.text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("%d:%02d", "%d:%02d"),
        ("(%s|%s)", "(%s|%s)"),
        ("Page %d/%d", "%d/%d"),
        ("Time left: {hours}:{minutes}", ": {hours}:{minutes}"),
        ("Lists them ({call}), or {command}.", "({call})"),
        ("The size is {w}x{h}.", "{w}x{h}."),
        ("Image size: %dx%d pixels", "%dx%d Pixel"),
        ("Could not connect to v{a}.{b} (%s).", " v{a}.{b} "),
        ("Could not connect to v{a}.{b} (%s).", "(%s)"),
        ("Up to 20%% off for %s!", "20%%"),
    ],
)
def test_nothing_is_written_between_placeholders_and_what_touches_them(
    engine: OfflineEngine, text: str, kept: str
) -> None:
    options = RequestOptions(terms=Terms((), find))
    [result] = translate_offline(Translator(BUNDLE.manifest, TOKENIZER), engine, [text], options)
    assert kept in result.text
    assert not re.search(r"[MP]\b", result.text)  # the pieces of stand-ins
    assert not result.glossary_misses


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("My friends Иван Петров and Αθήνα live here.", ["Иван Петров", "Αθήνα"]),
        ("The word 日本 means Japan.", ["日本"]),
        ("I love 🍕 and ☕ in the morning.", ["🍕", "☕"]),
        ("It costs 10⁶ dollars, and the board is 15½ inches wide.", ["10⁶", "15½"]),
        ("Где вокзал?", ["Где вокзал?"]),
        ("The Intel® Core™ processor is fast.", ["Intel® Core™"]),
        ("Menu · Settings: 8 ÷ 2 is not ∞.", ["·", "÷", "∞"]),
    ],
)
def test_words_that_the_model_has_no_pieces_for_stay_as_they_are(
    engine: OfflineEngine, text: str, kept: list[str]
) -> None:
    [result] = translate_offline(Translator(BUNDLE.manifest, TOKENIZER), engine, [text])
    assert [result.text.count(each) for each in kept] == [1] * len(kept), result.text
    assert "\ufffd" not in result.text
    assert not result.glossary_misses


def test_signs_that_html_names_stay_too(engine: OfflineEngine) -> None:
    options = RequestOptions(has_tags=True)
    text = "<p>The <b>Intel&reg;</b> processor is &#8734; fast.</p>"
    [result] = translate_offline(Translator(BUNDLE.manifest, TOKENIZER), engine, [text], options)
    assert [result.text.count(each) for each in ("Intel®", "∞", "\ufffd")] == [1, 1, 0], result.text


@pytest.mark.parametrize(
    "texts",
    [
        ("I don´t know, and it´s late.", "I don't know, and it's late."),
        ("The devel\u00adop\u2060ment is\u200d fast.", "The development is fast."),
    ],
)
def test_signs_that_are_typed_for_others_or_invisible(engine: OfflineEngine, texts: tuple[str, str]) -> None:
    typed, meant = translate_offline(Translator(BUNDLE.manifest, TOKENIZER), engine, texts)
    assert typed.text == meant.text


def test_terms_of_a_call_and_words_without_pieces_stand_in_one_sentence(engine: OfflineEngine) -> None:
    options = RequestOptions(terms=Terms([Index([GlossaryEntry("library", ("Bücherei",))])]))
    [result] = translate_offline(Translator(BUNDLE.manifest, TOKENIZER), engine, ["Иван is in the library."], options)
    assert "Иван" in result.text
    assert "Bücherei" in result.text


@pytest.mark.parametrize(
    ("text", "alone", "around"),
    [
        ("• Open it. →", "Open it.", "• {} →"),  # signs around a sentence stay outside
        ("DO NOT ENTER THE ROOM 😀", "DO NOT ENTER THE ROOM", "{} 😀"),  # read in small letters as ever
    ],
)
def test_what_is_done_for_all_sentences_is_done_beside_words_without_pieces(
    engine: OfflineEngine, text: str, alone: str, around: str
) -> None:
    translator = Translator(BUNDLE.manifest, TOKENIZER)
    both, [own] = (translate_offline(translator, engine, [each]) for each in (f"{text}\nИван", alone))
    assert both[0].text == f"{around.format(own.text)}\nИван"


def test_a_term_of_the_call_may_be_a_word_without_pieces(engine: OfflineEngine) -> None:
    options = RequestOptions(terms=Terms([Index([GlossaryEntry("Иван", ("Johann",))])]))
    [result] = translate_offline(Translator(BUNDLE.manifest, TOKENIZER), engine, ["My friend Иван is here."], options)
    assert "Johann" in result.text
