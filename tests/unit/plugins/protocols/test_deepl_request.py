from typing import Any

import pytest

from dragoman.errors import InvalidRequestError
from dragoman.v1 import translation_pb2 as pb
from plugins.protocols.deepl_request import asked_of

LEAST = {"text": ["Tom"], "target_lang": "DE"}


def test_little_is_needed() -> None:
    request = pb.TranslateTextRequest(
        contents=["Tom"], source_language_code="auto", target_language_code="DE", mime_type="text/plain", options={}
    )
    assert asked_of(LEAST) == (request, False)
    assert asked_of({"text": "Tom", "target_lang": "DE", "show_billed_characters": "1"}) == (request, True)


def test_glossaries_and_tags() -> None:
    asked, _ = asked_of(
        LEAST
        | {
            "source_lang": "EN",
            "glossary_id": "one",
            "glossary_ids": ["two", "three"],
            "tag_handling": "xml",
            "splitting_tags": ["p", "q,r"],
            "ignore_tags": "x, y",
            "non_splitting_tags": "b",
            "outline_detection": "0",
        }
    )
    assert (asked.source_language_code, asked.mime_type) == ("EN", "text/xml")
    assert asked.options.glossary == pb.Glossary(names=["one", "two", "three"])
    assert asked.options.xml_tags == pb.XmlTags(splitting=["p", "q", "r"], kept=["x", "y"])
    html, _ = asked_of(LEAST | {"tag_handling": "html"})
    assert (html.mime_type, html.options) == ("text/html", pb.TranslateOptions())


def test_advice_changes_nothing() -> None:
    advice = {
        "split_sentences": "0",
        "preserve_formatting": True,
        "formality": "prefer_more",
        "context": "A kitchen.",
        "model_type": "latency_optimized",
        "tag_handling_version": "v2",
        "unknown": "x",
    }
    assert asked_of(LEAST | advice) == asked_of(LEAST)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"text": None}, "text"),
        ({"text": []}, "text"),
        ({"text": ["a", 5]}, "text[1]"),
        ({"text": ["\ud800"]}, "text[0]"),
        ({"target_lang": ""}, "target_lang"),
        ({"target_lang": 5}, "target_lang"),
        ({"source_lang": "\ud800"}, "source_lang"),
        ({"formality": "more"}, "formality"),
        ({"formality": "less"}, "formality"),
        ({"split_sentences": "2"}, "split_sentences"),
        ({"model_type": "best"}, "model_type"),
        ({"tag_handling": "markdown"}, "tag_handling"),
        ({"preserve_formatting": "perhaps"}, "preserve_formatting"),
        ({"show_billed_characters": []}, "show_billed_characters"),
        ({"context": ["a"]}, "context"),
        ({"style_id": "a"}, "style_id"),
        ({"translation_memory_id": "a"}, "translation_memory_id"),
        ({"custom_instructions": ["a"]}, "custom_instructions"),
        ({"outline_detection": True, "tag_handling": "xml"}, "outline_detection"),
        ({"ignore_tags": ["x"]}, "ignore_tags"),
        ({"ignore_tags": ["x"], "tag_handling": "html"}, "ignore_tags"),
        ({"splitting_tags": ["p"]}, "splitting_tags"),
        ({"splitting_tags": [5], "tag_handling": "xml"}, "splitting_tags"),
        ({"splitting_tags": "p,q", "non_splitting_tags": "q", "tag_handling": "xml"}, "splitting_tags"),
        ({"splitting_tags": "p,q", "ignore_tags": "x,q", "tag_handling": "xml"}, "splitting_tags"),
    ],
)
def test_what_is_wrong_or_cannot_be_kept_is_named(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        asked_of(LEAST | given)
    assert caught.value.message.startswith(f"{field}: ")
