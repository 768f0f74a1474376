"""Each field of a request against its limit, alone and together with others that are wrong as well."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bundle import Manifest
from dragoman.errors import InvalidRequestError, UnknownGlossaryError, UnknownLanguagePairError, UnknownModelError
from dragoman.language import is_code
from dragoman.language_marks import LanguageMarks, Languages
from dragoman.v1 import translation_pb2 as pb
from plugins.batch.answers import check_contents
from plugins.batch.method import batch_route
from plugins.terms.glossaries import StoredGlossaries
from plugins.terms.limits import entry_of
from service.handlers import validation
from service.handlers.route import Route
from service.handlers.source_language import source_language_of
from service.handlers.validation import check_page, check_texts, is_request_id
from service.options import Sampling
from service.queue.mailbox import Mailbox
from service.registry.catalog import Catalog, Pipeline, ServedModel
from service.settings import Settings
from service.text.translator import Translator
from tests.unit.service.played import intake_of

SETTINGS = Settings(beam_size=2, max_contents=3, max_text_bytes=90_000, max_answer_bytes=65_536)
TEXT_BYTES = SETTINGS.max_answer_bytes // 3
# Of each field, what is wrong with it. A bad number of tokens is found once there is a model.
WRONG = {
    "source_language_code": "English",
    "target_language_code": "de_DE",
    "mime_type": "text/markdown",
    "request_id": "two words",
    "priority": 9,
}
RULES = {
    "source_language_code": "BCP-47",
    "target_language_code": "BCP-47",
    "mime_type": 'must be "text/plain", "text/html", "text/xml" or empty, is \'text/markdown\'',
    "request_id": "must be 1 to 128 letters, digits and any of \"._:-\", is 'two words'",
    "priority": "must be one of PRIORITY_UNSPECIFIED, PRIORITY_INTERACTIVE, PRIORITY_BULK, is 9",
}
NO_GLOSSARIES = StoredGlossaries()
CODED = ("fr", "it")
CODES = st.text("abcdeEN-_1 ", max_size=8)


@pytest.fixture(scope="session")
def catalog(manifest: Manifest, tokenizer) -> Catalog:
    names = {"en-de": ("en", "de"), "de-en": ("de", "en")}
    manifests = [
        manifest.model_copy(update={"name": name, "languages": Languages.pair(source, target)})
        for name, (source, target) in names.items()
    ]
    mailbox = Mailbox(9)
    intake = intake_of(mailbox)
    return Catalog(ServedModel(each, 32, Pipeline(Translator(each, tokenizer), mailbox, intake)) for each in manifests)


def request(*texts: str, **fields: object) -> pb.TranslateTextRequest:
    return pb.TranslateTextRequest(contents=texts or ("a",), **{"model": "en-de", **fields})


def check(
    asked: pb.TranslateTextRequest,
    catalog: Catalog,
    settings: Settings,
    glossaries: StoredGlossaries = NO_GLOSSARIES,
    **options: bool,
) -> Route:
    """Checks a request that says its language, or need not."""
    source = source_language_of(asked, catalog).code
    return validation.translation_route(asked, source, catalog, settings, glossaries, **options)


def check_config(
    asked: pb.BatchTranslateTextRequest,
    catalog: Catalog,
    settings: Settings,
    glossaries: StoredGlossaries = NO_GLOSSARIES,
) -> Route:
    """Checks the first message of a batch."""
    return batch_route(asked, catalog, settings, glossaries)


def wrong(catalog: Catalog, asked: pb.TranslateTextRequest, **options: bool) -> dict[str, str]:
    """Gives what is wrong with a request, by field."""
    with pytest.raises(InvalidRequestError) as refused:
        check(asked, catalog, SETTINGS, **options)
    violations = refused.value.violations
    assert len({field for field, _ in violations}) == len(violations)
    return dict(violations)


def test_a_good_request_has_its_model_and_the_limit_of_its_segments(catalog: Catalog, manifest: Manifest) -> None:
    route = check(request(), catalog, SETTINGS)
    assert (route.model_name, route.options.max_target_tokens) == ("en-de", manifest.max_target_tokens)
    by_languages = request(model="", source_language_code="DE", target_language_code="en", mime_type="text/html")
    assert check(by_languages, catalog, SETTINGS).model_name == "de-en"
    assert check(request(options={"max_target_tokens": 3}), catalog, SETTINGS).options.max_target_tokens == 3


@given(st.sets(st.sampled_from(sorted(WRONG))), st.booleans(), st.booleans())
def test_all_that_is_wrong_is_named_at_once_and_nothing_else(catalog, fields: set[str], count, tokens) -> None:
    asked = request(*["a"] * (4 if count else 1), **{field: WRONG[field] for field in fields})
    # With a language that is none there may be no model, and so no limit of tokens.
    tokens = tokens and not fields & {"source_language_code", "target_language_code"}
    if tokens:
        asked.options.max_target_tokens = 10_000
    expected = {field: RULES[field] for field in fields}
    expected |= {"contents": "must hold 1 to 3 texts, holds 4"} if count else {}
    expected |= {"options.max_target_tokens": "must be at most 32 for model en-de, is 10000"} if tokens else {}
    if not expected:
        assert check(asked, catalog, SETTINGS).model_name == "en-de"
        return
    found = wrong(catalog, asked)
    assert found.keys() == expected.keys()
    assert all(expected[field] in found[field] for field in found)


@given(CODES, CODES, st.sampled_from(["", "en-de", "x"]))
def test_a_request_is_served_or_refused_for_a_reason_that_it_has(catalog, source: str, target: str, model) -> None:
    asked = request(model=model, source_language_code=source, target_language_code=target)
    bad = {
        field
        for field, code in (("source_language_code", source), ("target_language_code", target))
        if code and not is_code(code)
    }
    kind, of_it = outcome(asked, catalog)
    if bad:
        assert (kind, of_it) == (InvalidRequestError, bad)
    elif model == "x":
        assert kind is UnknownModelError
    else:
        assert kind in (None, UnknownLanguagePairError)
        assert kind or model in ("", of_it)


def outcome(asked: pb.TranslateTextRequest, catalog: Catalog) -> tuple[type[Exception] | None, object]:
    """Gives the kind of the error with the fields that it names, or None with the name of the model."""
    try:
        return None, check(asked, catalog, SETTINGS).model_name
    except InvalidRequestError as error:
        return type(error), {field for field, _ in error.violations}


def test_languages_that_a_model_must_be_told_are_named(catalog: Catalog, manifest: Manifest, tokenizer) -> None:
    marks = {
        code: LanguageMarks(aliases=(f"{code}_x",), source_prefix=(place,)) for place, code in enumerate(("fr", "it"))
    }
    own = manifest.model_copy(
        update={"name": "many", "languages": Languages(sources=CODED, targets=("it", "en"), marks=marks)}
    )
    mailbox = Mailbox(9)
    several = Catalog(
        [*catalog, ServedModel(own, 32, Pipeline(Translator(own, tokenizer), mailbox, intake_of(mailbox)))]
    )
    assert wrong(several, request(model="many")) == {
        "target_language_code": "required: model many writes 2 languages",
    }
    assert wrong(several, request(model="", source_language_code="fr")) == {
        "target_language_code": "required: model many writes 2 languages",
    }
    assert wrong(several, request(model="", source_language_code="en")) == {
        "target_language_code": "required: there is a language that is translated into several",
    }
    assert check(request(model="", source_language_code="en"), catalog, SETTINGS).chosen.target == "de"
    route = check(request(model="", source_language_code="FR_X", target_language_code="en-US"), several, SETTINGS)
    assert route.chosen[1:3] == ("fr", "en")
    assert wrong(catalog, request(model="", source_language_code="fr_x", target_language_code="en"))


@given(st.integers(0, 6))
def test_the_number_of_texts_is_bounded(catalog, count: int) -> None:
    asked = pb.TranslateTextRequest(contents=["a"] * count, model="en-de")
    if 1 <= count <= SETTINGS.max_contents:
        check(asked, catalog, SETTINGS)
    else:
        assert wrong(catalog, asked) == {"contents": f"must hold 1 to 3 texts, holds {count}"}


def test_too_many_texts_are_not_measured(catalog) -> None:
    with pytest.raises(InvalidRequestError) as refused:  # together they are too large, too
        check(request(*["a" * TEXT_BYTES] * 4), catalog, SETTINGS, one_answer=True)
    assert refused.value.violations == [("contents", "must hold 1 to 3 texts, holds 4")]


@pytest.mark.parametrize("character", ["a", "é", "你", "😀"])
@pytest.mark.parametrize("parts", [1, 2])
def test_texts_that_are_answered_in_one_message_are_bounded_to_the_byte(catalog, character: str, parts: int) -> None:
    size = len(character.encode())
    text = character * (TEXT_BYTES // parts // size)
    largest = [text] * parts
    largest[-1] += "a" * (TEXT_BYTES - sum(len(each.encode()) for each in largest))
    check(request(*largest), catalog, SETTINGS, one_answer=True)
    largest[0] += "a"
    found = wrong(catalog, request(*largest), one_answer=True)
    assert found.keys() == {"contents"}
    assert f"must be at most {TEXT_BYTES} bytes together, are {TEXT_BYTES + 1}" in found["contents"]
    check(request(*largest), catalog, SETTINGS)  # as a stream


def test_texts_with_alternatives_have_their_part_of_the_message(catalog) -> None:
    limit = TEXT_BYTES // 4
    options = {"alternatives": 3}
    check(request("a" * limit, options=options), catalog, SETTINGS, one_answer=True)
    found = wrong(catalog, request("a" * (limit + 1), options=options), one_answer=True)
    assert f"at most {limit} bytes together with 3 alternatives of each, are {limit + 1}" in found["contents"]
    check(request("a" * (limit + 1), options=options), catalog, SETTINGS)  # as a stream


def test_texts_with_alignments_have_their_part_of_the_message(catalog) -> None:
    for options, parts, named in (
        ({"alignments": True}, 3, "the alignments of each"),
        ({"alignments": True, "alternatives": 2}, 5, "2 alternatives and the alignments of each"),
    ):
        limit = TEXT_BYTES // parts
        check(request("a" * limit, options=options), catalog, SETTINGS, one_answer=True)
        found = wrong(catalog, request("a" * (limit + 1), options=options), one_answer=True)
        assert f"at most {limit} bytes together with {named}, are {limit + 1}" in found["contents"]


def test_names_of_elements_need_xml_and_are_few(catalog) -> None:
    found = wrong(catalog, request(options={"xml_tags": {"kept": ["x"]}}))
    assert found == {"options.xml_tags": 'must be left out unless mime_type is "text/xml"'}
    names = {"splitting": ["p"] * 101, "kept": ["x"] * 100}
    found = wrong(catalog, request(mime_type="text/xml", options={"xml_tags": names}))
    assert found == {"options.xml_tags.splitting": "must hold at most 100 names, holds 101"}
    found = wrong(
        catalog, request(mime_type="text/xml", options={"xml_tags": {"splitting": ["b", "p"], "kept": ["p"]}})
    )
    assert found == {"options.xml_tags.splitting": "has a name of options.xml_tags.kept: 'p'"}


def test_words_of_html_have_no_alignments(catalog) -> None:
    check(request(options={"alignments": True}), catalog, SETTINGS)
    for kind in ("text/html", "text/xml"):
        found = wrong(catalog, request(mime_type=kind, options={"alignments": True}))
        assert found == {"options.alignments": f'must be false for mime_type "{kind}"'}


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({}, 2),
        ({"beam_size": 1}, 1),
        ({"beam_size": 16, "alternatives": 16, "length_penalty": 10.0}, 16),
        ({"alternatives": 1}, 2),
        ({"alternatives": 16, "length_penalty": -10.0}, 16),
        ({"beam_size": 1, "alternatives": 1, "length_penalty": 0.0}, 1),
    ],
)
def test_a_beam_is_as_wide_as_asked_for_or_as_the_alternatives_need(catalog, options: dict, size: int) -> None:
    assert check(request(options=options), catalog, SETTINGS).options.decoding.beam_size == size
    config = pb.BatchTranslateTextConfig(model="en-de", options=options)
    route = check_config(pb.BatchTranslateTextRequest(config=config), catalog, SETTINGS)
    assert route.options.decoding.beam_size == size


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"beam_size": 17}, {"beam_size": "must be at most 16, is 17"}),
        ({"alternatives": 17}, {"alternatives": "must be at most 16, is 17"}),
        (
            {"beam_size": 3, "alternatives": 4},
            {"alternatives": "must be at most beam_size, which is 3, is 4"},
        ),
        ({"beam_size": 1, "alternatives": 2}, {"alternatives": "must be at most beam_size, which is 1, is 2"}),
        ({"length_penalty": 10.5}, {"length_penalty": "must be -10 to 10, is 10.5"}),
        ({"length_penalty": 10.0000001}, {"length_penalty": "must be -10 to 10, is 10.0000001"}),
        ({"length_penalty": math.nan}, {"length_penalty": "must be -10 to 10, is nan"}),
        ({"length_penalty": -math.inf}, {"length_penalty": "must be -10 to 10, is -inf"}),
        (
            {"beam_size": 2**32 - 1, "alternatives": 16, "length_penalty": -11},
            {
                "beam_size": "must be at most 16, is 4294967295",
                "length_penalty": "must be -10 to 10, is -11",
            },
        ),
    ],
)
def test_an_impossible_beam_is_named_with_its_limits(catalog, options: dict, expected: dict[str, str]) -> None:
    assert wrong(catalog, request(options=options)) == {
        f"options.{field}": description for field, description in expected.items()
    }


@pytest.mark.parametrize("field", ["beam_size", "alternatives"])
def test_a_beam_has_no_more_hypotheses_than_its_model_has_slots(catalog, field: str) -> None:
    few = Catalog(dataclasses.replace(model, slots=3) for model in catalog)
    check(request(options={field: 3}), few, SETTINGS)
    with pytest.raises(InvalidRequestError, match=rf"^options.{field}: must be at most 3, the number of slots, is 4$"):
        check(request(options={field: 4}), few, SETTINGS)


def test_draws_have_a_beam_of_one_whatever_the_server_does_else(catalog) -> None:
    assert SETTINGS.beam_size == 2
    for options in ({}, {"beam_size": 1}, {"alternatives": 1}):
        route = check(request(options={**options, "sampling": {"seed": 0}}), catalog, SETTINGS)
        assert (route.options.decoding.beam_size, route.options.decoding.sampling) == (1, Sampling(0))
    asked = {"temperature": 0.01, "top_k": 2**32 - 1, "top_p": 1.0, "seed": 2**32 - 1}
    config = pb.BatchTranslateTextConfig(model="en-de", options={"sampling": asked})
    route = check_config(pb.BatchTranslateTextRequest(config=config), catalog, SETTINGS)
    assert route.options.decoding.sampling == Sampling(**asked)
    assert check(request(), catalog, SETTINGS).options.decoding.sampling is None


def test_a_seed_that_is_not_given_is_drawn(catalog) -> None:
    asked = request(options={"sampling": {}})
    assert len({check(asked, catalog, SETTINGS).options.decoding.sampling.seed for _ in range(10)}) > 5


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"beam_size": 2}, {"beam_size": "must be at most 1 with options.sampling, is 2"}),
        ({"alternatives": 2}, {"alternatives": "must be at most 1 with options.sampling, is 2"}),
        (
            {"beam_size": 4, "alternatives": 3},
            {
                "beam_size": "must be at most 1 with options.sampling, is 4",
                "alternatives": "must be at most 1 with options.sampling, is 3",
            },
        ),
        (
            {"sampling": {"temperature": 0.0}},
            {"sampling.temperature": "must be 0.01 to 10, is 0; greedy decoding draws nothing"},
        ),
        ({"sampling": {"top_p": 0.0}}, {"sampling.top_p": "must be more than 0 and at most 1, is 0"}),
        (
            {"sampling": {"temperature": 10.0000001, "top_p": 1 + 2**-52}},
            {
                "sampling.temperature": "must be 0.01 to 10, is 10.0000001; greedy decoding draws nothing",
                "sampling.top_p": "must be more than 0 and at most 1, is 1.0000000000000002",
            },
        ),
        (
            {"sampling": {"temperature": math.nan, "top_p": math.nan}},
            {
                "sampling.temperature": "must be 0.01 to 10, is nan; greedy decoding draws nothing",
                "sampling.top_p": "must be more than 0 and at most 1, is nan",
            },
        ),
        (
            {"sampling": {"temperature": math.inf, "top_p": 1.5}, "beam_size": 3},
            {
                "beam_size": "must be at most 1 with options.sampling, is 3",
                "sampling.temperature": "must be 0.01 to 10, is inf; greedy decoding draws nothing",
                "sampling.top_p": "must be more than 0 and at most 1, is 1.5",
            },
        ),
    ],
)
def test_impossible_draws_are_named_with_their_limits(catalog, options: dict, expected: dict[str, str]) -> None:
    assert wrong(catalog, request(options={"sampling": {}, **options})) == {
        f"options.{field}": description for field, description in expected.items()
    }


def test_a_text_that_will_not_be_translated_needs_no_room_in_the_answer(catalog) -> None:
    check(request("a" * (SETTINGS.max_text_bytes + 1), "a"), catalog, SETTINGS, one_answer=True)


@given(st.text("aZ09._:- é/", max_size=130))
def test_the_name_of_a_request(text: str) -> None:
    allowed = set("aZ09._:-")
    assert is_request_id(text) is (0 < len(text) <= 128 and set(text) <= allowed)


def test_a_bad_value_is_repeated_in_part_only(catalog) -> None:
    found = wrong(catalog, request(mime_type="x" * 5_000))
    assert len(found["mime_type"]) < 200
    assert "xxx…" in found["mime_type"]


def test_the_first_message_of_a_batch_holds_the_config_and_nothing_else(catalog) -> None:
    config = {"model": "en-de", "options": {"max_target_tokens": 5}}
    route = check_config(pb.BatchTranslateTextRequest(config=config), catalog, SETTINGS)
    assert (route.model_name, route.options.max_target_tokens) == ("en-de", 5)
    for asked, field in (
        (pb.BatchTranslateTextRequest(contents=["a"]), "config"),
        (pb.BatchTranslateTextRequest(config=config, contents=["a"]), "contents"),
        (pb.BatchTranslateTextRequest(), "config"),
    ):
        with pytest.raises(InvalidRequestError) as refused:
            check_config(asked, catalog, SETTINGS)
        assert [name for name, _ in refused.value.violations] == [field]


def test_what_is_wrong_with_a_config_is_named_with_its_path(catalog) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        check_config(pb.BatchTranslateTextRequest(config={"model": "en-de", **WRONG}), catalog, SETTINGS)
    assert {field for field, _ in refused.value.violations} == {f"config.{field}" for field in WRONG}


@given(st.integers(0, 6), st.booleans())
def test_a_further_message_of_a_batch_holds_texts_and_no_config(count: int, config: bool) -> None:
    asked = pb.BatchTranslateTextRequest(contents=["a"] * count, config={} if config else None)
    bad = ["config"] * config + ["contents"] * (not 1 <= count <= SETTINGS.max_contents)
    if not bad:
        check_contents(asked, SETTINGS)
        return
    with pytest.raises(InvalidRequestError) as refused:
        check_contents(asked, SETTINGS)
    assert [field for field, _ in refused.value.violations] == bad


@given(st.integers(-(2**31), 2**31 - 1), st.text(max_size=9))
def test_a_page_has_any_token_and_a_size_that_is_not_negative(size: int, token: str) -> None:
    asked = pb.ListModelsRequest(page_size=size, page_token=token)
    if size >= 0:
        check_page(asked)
        return
    with pytest.raises(InvalidRequestError, match=f"page_size: must not be negative, is {size}"):
        check_page(asked)


def test_terms_are_those_of_the_request_then_those_of_stored_glossaries(catalog: Catalog, tmp_path) -> None:
    (tmp_path / "names.csv").write_text("Tom\nhouse,Heim\n")
    glossaries = StoredGlossaries(str(tmp_path))
    glossaries.refresh()
    glossary = pb.Glossary(entries=[pb.GlossaryEntry(source_term="house", target_terms=["Haus"])], names=["names"])
    options = pb.TranslateOptions(glossary=glossary, protect_placeholders=True)
    terms = check(request(options=options), catalog, SETTINGS, glossaries).options.terms
    assert terms is not None
    assert [match.forms for match in terms.find("house Tom {x}")] == [("Haus",), ("Tom",), ("{x}",)]
    assert check(request(), catalog, SETTINGS, glossaries).options.terms is None
    with pytest.raises(UnknownGlossaryError):
        check(request(options=options), catalog, SETTINGS)
    config = pb.BatchTranslateTextConfig(model="de-en", options=options)
    (tmp_path / "names.en-de.csv").write_text("Tom\n")
    glossaries.refresh()
    config.options.glossary.names.append("names.en-de")
    with pytest.raises(InvalidRequestError) as refused:
        check_config(pb.BatchTranslateTextRequest(config=config), catalog, SETTINGS, glossaries)
    assert [field for field, _ in refused.value.violations] == ["config.options.glossary.names[1]"]


def test_entries_of_the_same_term_have_few_enough_forms_together(catalog: Catalog) -> None:
    entries = [
        pb.GlossaryEntry(source_term="a", target_terms=[f"b{number}" for number in range(10)]),
        pb.GlossaryEntry(source_term="a", target_terms=[f"c{number}" for number in range(10)], ignore_case=True),
        pb.GlossaryEntry(source_term="a", target_terms=[f"b{number}" for number in range(16)]),
        pb.GlossaryEntry(source_term="a"),
    ]
    found = wrong(catalog, request(options=pb.TranslateOptions(glossary=pb.Glossary(entries=entries))))
    assert found == {
        "options.glossary.entries[3].target_terms": "must be at most 16 together with those of the same term before, "
        "are 17"
    }


def test_a_glossary_has_few_enough_good_terms(catalog: Catalog) -> None:
    entries = [
        pb.GlossaryEntry(source_term="a" * 257),
        pb.GlossaryEntry(source_term="a", target_terms=["b", "", *"c" * 15]),
        *[pb.GlossaryEntry(source_term="a")] * 999,
    ]
    found = wrong(
        catalog, request(options=pb.TranslateOptions(glossary=pb.Glossary(entries=entries, names=["n"] * 17)))
    )
    assert found == {
        "options.glossary.entries": "must hold at most 1000, holds 1001",
        "options.glossary.names": "must hold at most 16, holds 17",
        "options.glossary.entries[0].source_term": "must have 1 to 256 characters, has 257",
        "options.glossary.entries[1].target_terms": "must hold at most 16, holds 17",
        "options.glossary.entries[1].target_terms[1]": "must have 1 to 256 characters, has 0",
    }


def test_of_a_glossary_with_too_many_entries_the_first_are_read(catalog: Catalog, monkeypatch) -> None:
    read: list[pb.GlossaryEntry] = []
    monkeypatch.setattr("plugins.terms.limits.entry_of", lambda entry: read.append(entry) or entry_of(entry))
    glossary = pb.Glossary(entries=[pb.GlossaryEntry(source_term="a")] * 5_000)
    found = wrong(catalog, request(options=pb.TranslateOptions(glossary=glossary)))
    assert found == {"options.glossary.entries": "must hold at most 1000, holds 5000"}
    assert len(read) == 1_000


def test_of_a_known_route_the_texts_and_the_name_of_a_request_are_checked(catalog) -> None:
    asked = request("a" * (TEXT_BYTES + 1), request_id="two words")
    with pytest.raises(InvalidRequestError) as refused:
        check_texts(asked, SETTINGS, one_answer=True)
    assert [field for field, _ in refused.value.violations] == ["contents", "request_id"]
    with pytest.raises(InvalidRequestError) as refused:
        check_texts(request(*"abcd"), SETTINGS, one_answer=False)
    assert refused.value.message == "contents: must hold 1 to 3 texts, holds 4"
    check_texts(request("a" * TEXT_BYTES, request_id="one.word"), SETTINGS, one_answer=True)
    check_texts(request("a" * (TEXT_BYTES + 1)), SETTINGS, one_answer=False)  # as a stream
