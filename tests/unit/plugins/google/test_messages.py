"""Messages of Google's API as those of this server, and back."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidRequestError
from dragoman.v1 import translation_pb2 as pb
from plugins.google import messages
from plugins.google.v3 import translation_service_pb2 as google
from service.settings import Settings

PARENT = "projects/p/locations/global"


def request(**fields: object) -> google.TranslateTextRequest:
    known = {"parent": PARENT, "contents": ["a"], "source_language_code": "en", "target_language_code": "de"}
    return google.TranslateTextRequest(**(known | fields))


def asked_of(request: google.TranslateTextRequest) -> pb.TranslateTextRequest:
    return messages.translation_asked(request, Settings(max_contents=3))


def refused(*asked: google.TranslateTextRequest) -> list[str]:
    """The fields that are named."""
    fields = []
    for each in asked:
        with pytest.raises(InvalidRequestError) as caught:
            asked_of(each)
        fields += [violation.field for violation in caught.value.violations]
    return fields


def test_defaults_are_those_of_the_api() -> None:
    asked = asked_of(request(source_language_code=""))
    assert asked == pb.TranslateTextRequest(
        contents=["a"], source_language_code="auto", target_language_code="de", mime_type="text/html"
    )


def test_all_or_nothing_where_the_language_is_said() -> None:
    asked = asked_of(request(mime_type="text/plain", labels={"team": "a"}))
    assert (asked.all_or_nothing, asked.mime_type, asked.source_language_code) == (True, "text/plain", "en")


def test_too_many_texts_are_counted_before_they_are_copied() -> None:
    assert len(asked_of(request(contents=["a"] * 3)).contents) == 3
    assert refused(request(contents=["a"] * 4), request(contents=[])) == ["contents", "contents"]


@pytest.mark.parametrize("parent", ["projects/p", "projects/1/locations/us-central1", "projects/example.com:p"])
def test_parents(parent: str) -> None:
    assert asked_of(request(parent=parent)).contents == ["a"]
    assert messages.languages_asked(google.GetSupportedLanguagesRequest(parent=parent)) == pb.ListModelsRequest()


@pytest.mark.parametrize(
    "parent", ["", "p", "projects/", "projects/p/locations/", "projects/p/locations/l/x", "x" * 99]
)
def test_bad_parents(parent: str) -> None:
    assert refused(request(parent=parent)) == ["parent"]
    with pytest.raises(InvalidRequestError, match=r"^parent: "):
        messages.detection_asked(google.DetectLanguageRequest(parent=parent, content="a"))
    with pytest.raises(InvalidRequestError, match=r"^parent: "):
        messages.languages_asked(google.GetSupportedLanguagesRequest(parent=parent))


@given(st.fixed_dictionaries(dict.fromkeys(["parent", "model", "source_language_code", "mime_type"], st.text())))
def test_whatever_is_in_a_field_is_read_or_refused(fields: dict[str, str]) -> None:
    for parent in (fields["parent"], PARENT):
        for model in (fields["model"], f"{PARENT}/models/{fields['model']}"):
            with contextlib.suppress(InvalidRequestError):
                asked = asked_of(request(**fields | {"parent": parent, "model": model}))
                assert asked.source_language_code
                assert asked.mime_type


@given(st.text(max_size=250))
def test_what_is_taken_for_a_parent_is_short(parent: str) -> None:
    try:
        asked_of(request(parent=f"projects/{parent}"))
    except InvalidRequestError:
        return
    assert len(parent) <= 211
    assert parent.count("/") in (0, 2)


@pytest.mark.parametrize(
    ("name", "model"),
    [("general/nmt", ""), ("general/translation-llm", ""), ("en-de", "en-de"), ("general/base", "general/base")],
)
def test_names_of_models(name: str, model: str) -> None:
    assert asked_of(request(model=f"{PARENT}/models/{name}")).model == model


def test_everything_that_is_wrong_is_named() -> None:
    config = google.TranslateTextGlossaryConfig(glossary="terms", ignore_case=True, contextual_translation_enabled=True)
    transliteration = google.TransliterationConfig(enable_transliteration=True)
    wrong = request(parent="", model="en-de", glossary_config=config, transliteration_config=transliteration)
    assert sorted(refused(wrong)) == [
        "glossary_config.contextual_translation_enabled",
        "glossary_config.glossary",
        "glossary_config.ignore_case",
        "model",
        "parent",
        "transliteration_config.enable_transliteration",
    ]
    assert refused(request(glossary_config=google.TranslateTextGlossaryConfig())) == ["glossary_config.glossary"]


def test_a_glossary_and_its_translations() -> None:
    config = google.TranslateTextGlossaryConfig(glossary=f"{PARENT}/glossaries/terms.en-de")
    wanted = request(glossary_config=config)
    asked = asked_of(wanted)
    assert list(asked.options.glossary.names) == ["terms.en-de"]
    answer = pb.TranslateTextResponse(translations=[{"translated_text": "A", "model": "en-de"}])
    made = messages.translated(wanted, asked, answer)
    assert list(made.translations) == [google.Translation(translated_text="A")]
    assert list(made.glossary_translations) == [google.Translation(translated_text="A", glossary_config=config)]


def test_the_model_is_answered_where_it_was_asked_for() -> None:
    wanted = request(model=f"{PARENT}/models/general/nmt")
    answer = pb.TranslateTextResponse(translations=[{"translated_text": "A", "model": "en-de"}])
    made = messages.translated(wanted, asked_of(wanted), answer)
    assert list(made.translations) == [google.Translation(translated_text="A", model=wanted.model)]
    assert not made.glossary_translations


def test_detected_languages_are_answered() -> None:
    wanted = request(source_language_code="", contents=["ja", "1"])
    translations = [
        pb.TranslatedText(translated_text="oui", detected_language_code="fr"),
        pb.TranslatedText(translated_text="1"),
    ]
    asked = asked_of(wanted)
    made = messages.translated(wanted, asked, pb.TranslateTextResponse(translations=translations))
    told = [(each.translated_text, each.detected_language_code) for each in made.translations]
    assert told == [("oui", "fr"), ("1", "und")]


def test_detection() -> None:
    wanted = google.DetectLanguageRequest(
        parent=PARENT, content="<p>a", model=f"{PARENT}/models/language-detection/default"
    )
    asked = pb.DetectLanguageRequest(contents=["<p>a"], mime_type="text/html")
    assert messages.detection_asked(wanted) == asked
    for wrong in ({"content": None}, {"model": f"{PARENT}/models/general/nmt"}):
        fields = {"parent": PARENT, "content": "a"} | wrong
        with pytest.raises(InvalidRequestError, match=f"^{next(iter(wrong))}: "):
            messages.detection_asked(google.DetectLanguageRequest(**fields))
    nothing = messages.detected(pb.DetectLanguageResponse(detections=[{}]))
    assert [(each.language_code, each.confidence) for each in nothing.languages] == [("und", 0.0)]


def test_languages() -> None:
    models = pb.ListModelsResponse(
        models=[
            pb.Model(name="en-de", source_language_codes=["en"], target_language_codes=["de"]),
            pb.Model(name="many", source_language_codes=["de", "fr"], target_language_codes=["en", "xx"]),
        ]
    )

    def told(**fields: str) -> list[tuple[str, str, bool, bool]]:
        wanted = google.GetSupportedLanguagesRequest(parent=PARENT, **fields)
        made = messages.languages(wanted, models).languages
        return [(each.language_code, each.display_name, each.support_source, each.support_target) for each in made]

    assert told() == [
        ("de", "", True, True),
        ("en", "", True, True),
        ("fr", "", True, False),
        ("xx", "", False, True),
    ]
    assert told(model=f"{PARENT}/models/general/nmt") == told()
    assert told(display_language_code="en", model=f"{PARENT}/models/en-de") == [
        ("de", "German", False, True),
        ("en", "English", True, False),
    ]
