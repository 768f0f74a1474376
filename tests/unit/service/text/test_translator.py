import random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.bundle import Manifest, target_limit
from dragoman.errors import InternalError, InvalidRequestError
from dragoman.glossary import GlossaryEntry
from dragoman.language_marks import LanguageMarks, Languages
from dragoman.tokenizer import Tokenizer
from plugins.offline.texts import translate_offline
from plugins.terms import placeholders
from plugins.terms.finding import Index, missing
from plugins.terms.terms import Terms
from service.decode import Decode, FinishReason
from service.options import Decoding, RequestOptions, Sampling, XmlTags
from service.segment import Segment
from service.settings import Settings
from service.text import translator as translator_module
from service.text.translator import Limits, Translator
from tests.unit.service.played_segments import end, fail

# U+2581 is the tokenizer's own sign for a space.
TEXTS = st.text(
    st.one_of(
        st.sampled_from(" \n\t\x00\u00a0.!?,。goodmrnigschö你好😀\u200d\u0301\ufffd"),
        st.characters(exclude_categories=["Cs"], exclude_characters="\u2581"),
    ),
    max_size=120,
)

ASKING = RequestOptions(decoding=Decoding.of(log_probability=True), mean_log_probability=True)


class Echo:
    """Decodes every segment to its source: the translation of a text is that text."""

    def decode(self, decodes: list[Decode]) -> None:
        for decode in decodes:
            decode.target_ids.extend(decode.source_ids[:-1][: decode.max_target_tokens])
            if decode.decoding.wants_attention:
                decode.attention.extend(np.eye(len(decode.source_ids), dtype=np.float32)[: len(decode.target_ids)])
            limited = len(decode.source_ids) > decode.max_target_tokens
            decode.finish(FinishReason.LENGTH if limited else FinishReason.EOS, 0.0)

    def decode_all(self, segments: list[Segment]) -> None:
        for segment in segments:
            while not segment.finished:
                step(segment)


class CountingTokenizer:
    """A token a character; says what it encoded."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.encoded.append(text)
        return [5] * len(text)


def step(segment: Segment, circles_at: int | None = None) -> None:
    """Adds one token, or ends; with REPETITION once it has so many."""
    position = len(segment.decode.target_ids)
    if position == circles_at:
        end(segment, FinishReason.REPETITION)
        return
    if position == segment.decode.max_target_tokens:
        end(segment, FinishReason.LENGTH)
    elif position == len(segment.decode.source_ids) - 1:
        end(segment, FinishReason.EOS)
    else:
        segment.decode.target_ids.append(segment.decode.source_ids[position])


@pytest.fixture(scope="session")
def translator(manifest, tokenizer) -> Translator:
    return Translator(manifest, tokenizer)


def test_marks_of_languages_are_no_tokens_of_the_text(manifest, tokenizer, translator) -> None:
    marks = {"en": LanguageMarks(source_prefix=(5, 6), source_suffix=(7,)), "de": LanguageMarks(target_tag=(8,))}
    texts = ["Tom. Where is the station?", "tom"]
    expected = [result.source_tokens for result in translate_offline(translator, Echo(), texts)]
    for ends in (True, False):
        languages = Languages(sources=("en",), targets=("de",), marks=marks, source_ends=ends)
        marked = Translator(manifest.model_copy(update={"languages": languages}), tokenizer)
        results = translate_offline(marked, Echo(), texts)
        assert [result.source_tokens for result in results] == expected


def test_each_piece_of_a_text_is_encoded_once_and_none_that_cannot_fit(manifest) -> None:
    for text, html in (("Tom. Good tom.\nWhere?", False), ("<p>Tom. <b>Good</b> tom.<p>Where?", True)):
        counting = CountingTokenizer()
        Translator(manifest, counting).prepare(text, RequestOptions(has_tags=html))
        assert counting.encoded == ["Tom.", "Good tom.", "Where?"]
    counting = CountingTokenizer()
    Translator(manifest, counting).prepare("a" * 100_000)
    assert max(map(len, counting.encoded)) <= 16 * manifest.max_source_tokens


def test_a_text_is_not_searched_before_it_is_read(translator, monkeypatch) -> None:
    searched: list[str] = []
    monkeypatch.setattr(translator_module, "MAYBE_LITERAL", SimpleNamespace(search=searched.append))
    document = translator.open("Tom. Good tom.")
    assert not searched
    document.read_all()
    assert searched == ["Tom. Good tom."]


@given(TEXTS)
@example("")
@example(" \x00 ")
@example("😀" * 20 + " tom")
@example("tom\u200b. \ufeffgood")
@example("&\n<\ntom")
def test_an_identity_translation_is_the_text(translator, text) -> None:
    [result] = translate_offline(translator, Echo(), [text])
    assert result.text == text
    assert result.finish_reason is FinishReason.EOS
    assert result.source_tokens == result.target_tokens


@given(TEXTS, st.randoms(use_true_random=False), st.integers(1, 32), st.none() | st.integers(0, 9))
@example("😀a" * 3, random.Random(0), 3, None)
@example("😀a" * 3, random.Random(0), 9, 3)
def test_deltas_never_retract_and_join_to_the_result(translator, text, chance, limit, circles_at) -> None:
    document = translator.prepare(text, RequestOptions(max_target_tokens=limit, wants_deltas=True))
    running = list(document.segments)
    deltas = [document.grow()]
    while running:
        segment = chance.choice(running)
        step(segment, circles_at)
        if segment.finished:
            running.remove(segment)
        deltas.append(document.grow())
    while delta := document.grow():
        deltas.append(delta)
    assert "".join(deltas) == document.result().text


def test_text_comes_out_while_it_is_decoded_and_in_order(translator) -> None:
    document = translator.prepare("  tom. Good tom.\n")
    first, second = document.segments
    assert document.grow() == "  "
    for _ in second.decode.source_ids:
        step(second)
    assert second.finished
    assert document.grow() == ""
    step(first)
    begun = document.grow()
    assert begun
    while not first.finished:
        step(first)
    assert begun + document.grow() == "tom. Good tom.\n"
    assert document.grow() == ""


def test_half_of_a_character_is_held_back(translator, tokenizer) -> None:
    document = translator.prepare("a 😀")
    [segment] = document.segments
    grown = []
    while not segment.finished:
        step(segment)
        grown.append(document.grow())
    assert "".join(grown) == "a 😀"
    assert "\ufffd" not in "".join(grown)


def test_half_of_a_character_that_is_cut_off_is_what_the_unary_answer_has(translator) -> None:
    document = translator.prepare("😀a", RequestOptions(max_target_tokens=2))
    [segment] = document.segments
    while not segment.finished:
        step(segment)
    assert document.grow() == document.result().text


def test_segments_end_with_eos_and_fit_the_model(translator, manifest) -> None:
    document = translator.prepare("good morning " * 50 + "x" * 200 + "你" * 99)
    assert len(document.segments) > 10
    for segment in document.segments:
        assert segment.decode.source_ids[-1] == manifest.eos_id
        assert 1 < len(segment.decode.source_ids) <= manifest.max_source_tokens


def test_options_reach_the_segments(translator, manifest) -> None:
    [segment] = translator.prepare(
        "tom", RequestOptions(max_target_tokens=5, deadline_s=7.0, wants_deltas=True)
    ).segments
    assert segment.decode.max_target_tokens == 5
    assert (segment.options.deadline_s, segment.options.wants_deltas) == (7.0, True)
    [segment] = translator.prepare("tom").segments
    assert segment.decode.max_target_tokens == target_limit(len(segment.decode.source_ids), manifest.max_target_tokens)
    assert segment.options.deadline_s is None


def test_the_limits_of_the_server_reach_the_segments(manifest, tokenizer) -> None:
    longest = manifest.max_target_tokens
    limits = Limits.of(Settings(max_target_factor=1.5, max_target_offset=3, stop_repetition=False))
    translator = Translator(manifest, tokenizer, limits)
    for text in ("tom", "good morning tom. ", "x" * 20):
        [segment] = translator.prepare(text).segments
        assert segment.decode.max_target_tokens == min(len(segment.decode.source_ids) * 3 // 2 + 3, longest)
        assert not segment.decode.decoding.stops_at_repetition
        [segment] = translator.prepare(text, RequestOptions(max_target_tokens=1)).segments
        assert segment.decode.max_target_tokens == 1
    assert Limits.of(Settings()) == Limits()


def test_who_goes_round_in_circles_is_stopped_by_default(translator) -> None:
    [segment] = translator.prepare("tom").segments
    assert segment.decode.decoding.stops_at_repetition


@pytest.mark.parametrize(
    ("reasons", "reason"),
    [
        ("EOS EOS EOS", "EOS"),
        ("EOS REPETITION EOS", "REPETITION"),
        ("REPETITION EOS LENGTH", "LENGTH"),
        ("LENGTH REPETITION EOS", "LENGTH"),
    ],
)
def test_a_text_ends_as_the_worst_of_its_segments(translator, reasons: str, reason: str) -> None:
    document = translator.prepare("Tom. Good. Where?")
    for segment, name in zip(document.segments, reasons.split(), strict=True):
        end(segment, FinishReason[name])
    assert document.result().finish_reason is FinishReason[reason]


def test_the_mean_log_probability_is_that_of_all_tokens(translator) -> None:
    document = translator.prepare("Tom. Good. Where?", ASKING)
    ends = [(FinishReason.EOS, 3, -2.0), (FinishReason.LENGTH, 5, -0.5), (FinishReason.EOS, 0, -0.25)]
    for segment, (reason, tokens, log_probability) in zip(document.segments, ends, strict=True):
        assert segment.decode.decoding.wants_log_probability
        segment.decode.target_ids = [7] * tokens
        segment.decode.log_probability = log_probability
        end(segment, reason)
    result = document.result()
    assert result.target_tokens == 8
    assert result.mean_log_probability == -2.75 / 10  # two end-of-sentence tokens


@pytest.mark.parametrize(("text", "asks"), [("tom", False), ("tom", True), ("", True), (" \n", True), ("", False)])
def test_a_mean_is_said_where_it_was_asked_for_and_there_are_tokens(translator, text: str, asks: bool) -> None:
    document = translator.prepare(text, ASKING if asks else RequestOptions())
    Echo().decode_all(document.segments)
    assert (document.result().mean_log_probability is not None) is bool(asks and text.strip())


def test_a_log_probability_that_only_alternatives_need_is_not_said_as_the_mean(translator) -> None:
    options = RequestOptions(decoding=Decoding.of(alternatives=1), alternatives=1)
    [result] = translate_offline(translator, Echo(), ["tom."], options)
    assert result.mean_log_probability is None
    assert [alternative.text for alternative in result.alternatives] == ["tom."]


@pytest.mark.parametrize("limit", [1, 3])
def test_one_segment_at_its_limit_makes_the_text_so(translator, limit) -> None:
    [result] = translate_offline(
        translator, Echo(), ["Tom. Where is the station?"], RequestOptions(max_target_tokens=limit)
    )
    assert result.finish_reason is FinishReason.LENGTH
    assert result.segments == 2


def test_counts_leave_the_end_of_sentence_out(translator, tokenizer) -> None:
    [result] = translate_offline(translator, Echo(), ["good morning"])
    assert result.source_tokens == result.target_tokens == len(tokenizer.encode("good morning"))


def test_the_error_of_a_segment_is_raised(translator) -> None:
    document = translator.prepare("Tom. Where is the station?")
    fail(document.segments[1], InternalError("broken"))
    with pytest.raises(InternalError, match="broken"):
        document.result()


def test_a_text_that_the_tokenizer_does_not_see_is_kept(translator, monkeypatch, tokenizer) -> None:
    monkeypatch.setattr(tokenizer, "encode", lambda text: [] if "ㅤ" in text else [5])
    document = translator.prepare("tom\nㅤ\ntom")
    assert len(document.segments) == 2
    for segment in document.segments:
        end(segment, FinishReason.EOS)
    assert document.result().text == "\nㅤ\n"


def test_a_bounded_number_of_segments_is_handed_out_at_a_time(translator) -> None:
    document = translator.prepare("Tom.\n" * 1000)
    Echo().decode_all(document.segments)
    deltas = list(iter(document.grow, ""))
    assert len(deltas) > 10
    assert "".join(deltas) == "Tom.\n" * 1000


def test_tags_inside_segments_count_like_segments(translator) -> None:
    html = "<p>" + "<b>t</b><i>o</i>m " * 5 + "</p>"
    document = translator.prepare(html * 20, RequestOptions(has_tags=True))
    assert (len(document.segments), document.weight) == (20, 20 * (1 + 32 + 20))
    Echo().decode_all(document.segments)
    deltas = list(iter(document.grow, ""))
    assert len(deltas) > 4
    assert "".join(deltas) == html * 20


def test_attention_is_asked_for_where_tags_are_inside_and_where_alignments_are_wanted(translator) -> None:
    html = "<p>Good tom. <b>Good</b> tom. <i>Tom.</i></p>"
    document = translator.prepare(html, RequestOptions(has_tags=True))
    assert [segment.decode.decoding.wants_attention for segment in document.segments] == [False, True, False]
    text = "Good tom.\n\nTom."
    for wanted in (False, True):
        document = translator.prepare(text, RequestOptions(alignments=wanted))
        assert [segment.decode.decoding.wants_attention for segment in document.segments] == [wanted, wanted]


def test_alignments_have_the_places_of_the_text(translator) -> None:
    text = "  Good   tom.\n\n- Tom? 你好 "
    [result] = translate_offline(translator, Echo(), [text], RequestOptions(alignments=True))
    words = ["Good", "tom", "Tom", "你好"]
    assert [text[slice(*link.source)] for link in result.alignments] == words
    assert [result.text[slice(*link.target)] for link in result.alignments] == words
    assert translate_offline(translator, Echo(), [text])[0].alignments == []


def test_a_sentence_in_capitals_is_decoded_in_small_letters_and_comes_back_in_capitals(translator, tokenizer) -> None:
    text, options = "GOOD MORNING TOM. Good. NATO.", RequestOptions(alignments=True)
    assert translator.prepare(text).segments[0].decode.source_ids[:-1] == tokenizer.encode("Good morning tom.")
    for each in (RequestOptions(), options, RequestOptions(quality_estimate=True)):
        assert translate_offline(translator, Echo(), [text], each)[0].text == text
    [result] = translate_offline(translator, Echo(), [text], options)
    assert [text[slice(*link.source)] for link in result.alignments] == ["GOOD", "MORNING", "TOM", "Good", "NATO"]
    assert all(link.source == link.target for link in result.alignments)
    document = translator.prepare(text)
    Echo().decode_all(document.segments)
    assert document.grow() == text
    html = "<b>GOOD</b> MORNING <i>TOM</i>"
    assert translate_offline(translator, Echo(), [html], RequestOptions(has_tags=True))[0].text == html


def test_capitals_stay_where_a_translation_is_begun_or_has_terms(translator, tokenizer) -> None:
    begun = RequestOptions(prefix_ids=translator.prefix_ids("TOM"))
    for options in (begun, RequestOptions(terms=Terms((), placeholders.find))):
        [segment] = translator.prepare("GOOD MORNING {X}", options).segments
        assert segment.decode.source_ids != tokenizer.encode("Good morning {x}")


def test_xml_is_text_and_tags(translator) -> None:
    xml = '<p>Good <n id="7"></n> tom.</p> <q>Where?</q> <x>is tom</x>'
    for tags, segments in ((XmlTags(), 3), (XmlTags(frozenset("n"), frozenset("x")), 3)):
        [result] = translate_offline(translator, Echo(), [xml], RequestOptions(has_tags=True, xml=tags))
        assert (result.text, result.segments) == (xml, segments)


def test_html_is_text_and_tags(translator) -> None:
    html = "<p class=x>  Good <b>morning</b> tom.\n<i>Where?</i></p><!-- Tom. --><br>&amp;"
    [result] = translate_offline(translator, Echo(), [html], RequestOptions(has_tags=True))
    assert result.text == html
    assert result.segments == 2
    [result] = translate_offline(translator, Echo(), ["<p>tom</p>"])
    assert result.segments == 1
    assert result.text == "<p>tom</p>"


@given(
    st.lists(st.sampled_from(["<p>", "</p>", "<b>", "</b>", "tom ", "good. ", "😀", "&amp; ", "<br>\n"])).map("".join)
)
@example("<b>😀</b>tom ")
@example("<b>😀 tom</b> good. ")
def test_deltas_of_html_join_to_the_result(translator, html) -> None:
    document = translator.prepare(html, RequestOptions(wants_deltas=True, has_tags=True))
    deltas = [document.grow()]
    for segment in document.segments:
        while not segment.finished:
            step(segment)
            deltas.append(document.grow())
    while delta := document.grow():
        deltas.append(delta)
    assert "".join(deltas) == document.result().text == html


def test_a_segment_of_html_comes_as_a_whole(translator) -> None:
    document = translator.prepare("<p>good <b>morning</b> tom</p>", RequestOptions(wants_deltas=True, has_tags=True))
    [segment] = document.segments
    assert document.grow() == "<p>"
    step(segment)
    assert segment.decode.target_ids
    assert document.grow() == ""
    Echo().decode_all([segment])
    assert document.grow() == "good <b>morning</b> tom</p>"


def test_html_that_the_tokenizer_does_not_see_is_kept(translator, monkeypatch, tokenizer) -> None:
    monkeypatch.setattr(tokenizer, "encode", lambda text: [] if "ㅤ" in text else [5])
    document = translator.prepare("<p>tom</p><p>ㅤ<b>ㅤ</b></p>", RequestOptions(has_tags=True))
    [segment] = document.segments
    end(segment, FinishReason.EOS)
    assert document.result().text == "<p></p><p>ㅤ<b>ㅤ</b></p>"


def test_pieces_without_a_token_are_counted(translator, monkeypatch, tokenizer, manifest) -> None:
    encode = tokenizer.encode
    monkeypatch.setattr(tokenizer, "encode", lambda text: [*encode(text), manifest.unknown_id, manifest.unknown_id])
    [result] = translate_offline(translator, Echo(), ["Tom. Where?"])
    assert result.unknown_pieces == 4


def test_a_text_is_refused_where_a_single_character_is_longer_than_the_model_takes(
    manifest: Manifest, tokenizer: Tokenizer
) -> None:
    short = Translator(manifest.model_copy(update={"max_source_tokens": 3}), tokenizer)
    assert short.prepare("tom 你").segments
    document = short.open("tom 𠮷", field="contents[1]")
    with pytest.raises(
        InvalidRequestError, match=r"^contents\[1\]: .* at most 2 tokens of the model, one is 5$"
    ) as bad:
        document.read_all()
    assert [violation.field for violation in bad.value.violations] == ["contents[1]"]


@pytest.mark.parametrize(("text", "split"), [("tom. " * 50, False), ("tom " * 50, True), ("", False)])
@pytest.mark.parametrize("html", [False, True])
def test_it_is_said_whether_a_sentence_was_split_inside(translator, text: str, split: bool, html: bool) -> None:
    [result] = translate_offline(translator, Echo(), [text], RequestOptions(has_tags=html))
    assert result.split is split
    assert result.unknown_pieces == 0


@pytest.mark.parametrize("long_one", range(3))
def test_a_sentence_of_any_block_of_html_that_was_split_inside_is_told(translator, long_one: int) -> None:
    html = "".join(f"<p>{'tom ' * (50 if block == long_one else 1)}</p>" for block in range(3))
    [result] = translate_offline(translator, Echo(), [html], RequestOptions(has_tags=True))
    assert result.split


def test_segments_without_a_translation_do_not_end_what_is_handed_out(translator) -> None:
    document = translator.prepare("你" * 3_000)
    *empty, last = document.segments
    assert len(empty) > 100
    for segment in empty:
        end(segment, FinishReason.EOS)
    Echo().decode_all([last])
    grown = []
    while delta := document.grow():
        grown.append(delta)
    assert "".join(grown) == document.result().text != ""


def test_a_prefix_begins_the_first_segment_alone(translator, tokenizer, manifest) -> None:
    options = RequestOptions(prefix_ids=translator.prefix_ids("Guten Tag"))
    first, second = translator.prepare("Good morning. Good day.", options).segments
    assert first.decode.prefix_ids == tuple(tokenizer.encode_target("Guten Tag"))
    assert second.decode.prefix_ids == ()
    [without] = translator.prepare("Good morning.").segments
    room = without.decode.max_target_tokens + len(first.decode.prefix_ids)
    assert first.decode.max_target_tokens == min(room, manifest.max_target_tokens)


@pytest.mark.parametrize(("text", "translation"), [("good", "guten"), ("{X}: {Y}", "{X}: {Y}")])
def test_a_text_that_is_nothing_but_terms_needs_the_model_for_a_prefix_alone(translator, text, translation) -> None:
    options = terms_of(GlossaryEntry("good", ("guten",)))
    document = translator.prepare(text, options)
    assert (document.grow(), [*document.segments]) == (translation, [])
    prefix_ids = translator.prefix_ids("tom")
    [segment] = translator.prepare(text, options._replace(prefix_ids=prefix_ids)).segments
    assert segment.decode.prefix_ids == prefix_ids


def test_a_prefix_leaves_the_limit_of_the_model(translator, manifest) -> None:
    options = RequestOptions(prefix_ids=translator.prefix_ids("G"), max_target_tokens=5)
    [segment] = translator.prepare("Good morning.", options).segments
    assert 0 < len(segment.decode.prefix_ids) < segment.decode.max_target_tokens == 5 < manifest.max_target_tokens


@pytest.mark.parametrize(
    ("prefix", "writable"),
    [("Guten", True), ("Guten Tag, ich", True), ("你", True), (" Guten", False), ("Guten ", False), ("a\t", False)],
)
def test_a_prefix_reads_the_same_in_the_pieces_of_the_model(translator, prefix: str, writable: bool) -> None:
    assert translator.is_writable(prefix) is writable


@pytest.mark.parametrize("html", [False, True])
def test_each_segment_of_a_text_has_draws_of_its_own_and_the_same_in_every_text(translator, html: bool) -> None:
    sampling = Sampling(7, temperature=0.5)
    options = RequestOptions(decoding=Decoding.of(sampling=sampling), has_tags=html)
    for _ in range(2):
        segments = translator.prepare("Good morning. Good day.\n\n.\nTom.", options).segments
        found = [segment.decode.decoding.sampling for segment in segments]
        assert found == [sampling._replace(segment=number) for number in range(3 if not html else len(segments))]
        assert len(segments) >= 2


def terms_of(*entries: GlossaryEntry) -> RequestOptions:
    return RequestOptions(terms=Terms([Index(entries)], placeholders.find))


def test_only_segments_with_terms_are_searched_and_the_others_stay_as_they_are(manifest, tokenizer) -> None:
    named = Translator(manifest.model_copy(update={"stand_ins": ("tom", "bahnhof")}), tokenizer, slots=3)
    options = terms_of(GlossaryEntry("good", ("guten", "schön")))
    document = named.prepare("Is it good {x}? It is.\n{y}\ngood", options)
    first, second = (segment.decode for segment in document.segments)
    assert first.source_ids[:-1] == tokenizer.encode("Is it good tom?")
    assert first.constraints is not None
    forms = [[tokenizer.decode(form) for form in term] for term in first.constraints.terms]
    assert forms == [["guten", "schön"], ["tom"]]
    decoding = first.decoding
    assert (decoding.beam_size, decoding.wants_attention, decoding.wants_log_probability) == (3, True, True)
    [plain] = (segment.decode for segment in named.prepare("It is.").segments)
    assert (second.source_ids, second.constraints) == (plain.source_ids, None)
    assert second.decoding == plain.decoding
    assert first.max_target_tokens == target_limit(len(first.source_ids), 32) + first.constraints.tokens or 32


def test_only_segments_with_terms_have_the_length_penalty_of_a_request_without_a_beam(manifest, tokenizer) -> None:
    options = terms_of(GlossaryEntry("good", ("guten",)))._replace(length_penalty=-5.0)
    decodes = [
        segment.decode for segment in Translator(manifest, tokenizer).prepare("Is it good?\nIt is.", options).segments
    ]
    assert [decode.decoding.length_penalty for decode in decodes] == [-5.0, 1.0]


def test_a_translation_has_its_terms_or_names_them(manifest, tokenizer) -> None:
    named = Translator(manifest.model_copy(update={"stand_ins": ("tom",)}), tokenizer)
    options = terms_of(GlossaryEntry("good", ("guten",)), GlossaryEntry("Zentrix"))
    [result] = translate_offline(named, Echo(), ["Zentrix is good. {x}\ngood, good"], options)
    assert result.text == "Zentrix is guten. {x}\nguten, guten"  # in place of the aligned word
    assert (result.glossary_misses, result.term_segments) == ((), 2)
    short = options._replace(max_target_tokens=1)
    [result] = translate_offline(named, Echo(), ["Is it good?\nIt is good."], short)
    assert result.glossary_misses == ("good",)
    html = options._replace(has_tags=True)
    [result] = translate_offline(named, Echo(), ["<p>a <b>Zentrix</b> &amp; <i translate=no>good</i> {x}</p>"], html)
    assert result.text == "<p>a <b>Zentrix</b> &amp; <i translate=no>good</i> {x}</p>"
    assert result.glossary_misses == ()


def test_text_with_terms_is_handed_out_once_it_is_whole(manifest, tokenizer) -> None:
    named = Translator(manifest.model_copy(update={"stand_ins": ("tom",)}), tokenizer)
    document = named.prepare("a {x} b", terms_of())
    [segment] = document.segments
    step(segment)
    assert document.grow() == ""
    Echo().decode_all([segment])
    assert document.grow() == document.result().text == "a {x} b"


@given(st.text(st.sampled_from("ab {x}.!Z,\n"), max_size=80))
@example("{Z\n}")
@example("{Z,\nZ}")
def test_what_is_not_kept_whole_is_named(manifest, tokenizer, text: str) -> None:
    """Of what stands within a line, since a line break ends a segment."""
    named = Translator(manifest.model_copy(update={"stand_ins": ("tom",)}), tokenizer)
    options = terms_of(GlossaryEntry("a"), GlossaryEntry("b. Z"), GlossaryEntry("Z", ("b",)))
    [result] = translate_offline(named, Echo(), [text], options)
    assert options.terms is not None
    found = [match for line in text.split("\n") for match in options.terms.find(line)]
    assert {match.name for match in missing(found, result.text)} <= set(result.glossary_misses)
