"""The keyword arguments of a call, and the fields that they become."""

import inspect
import re
from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Options
from dragoman.options import config_of, detect_request_of, request_of, score_request_of, shows_options
from dragoman.v1 import translation_pb2 as pb

OPTIONS = {
    "source_language": "en",
    "target_language": "de",
    "model": "en-de",
    "mime_type": "text/xml",
    "splitting_tags": ["p"],
    "kept_tags": ["x"],
    "max_target_tokens": 7,
    "mean_log_probability": True,
    "beam_size": 4,
    "length_penalty": 0.5,
    "alternatives": 3,
    "target_prefix": "Guten",
    "temperature": 0.5,
    "top_k": 3,
    "top_p": 0.75,
    "seed": 7,
    "alignments": True,
    "quality_estimate": True,
    "glossary": {"house": "Haus", "Tom": None, "home": ["Heim", "Haus"]},
    "glossaries": ["products.en-de"],
    "protect_placeholders": True,
    "request_id": "a",
    "priority": "bulk",
}


def test_every_option_becomes_its_field_in_both_kinds_of_calls() -> None:
    assert OPTIONS.keys() == Options.__annotations__.keys()
    request = request_of(["a", "b"], all_or_nothing=True, **OPTIONS)
    config = config_of(in_order=True, **OPTIONS)
    assert (list(request.contents), request.all_or_nothing, config.in_order) == (["a", "b"], True, True)
    for message in (request, config):
        assert (message.source_language_code, message.target_language_code) == ("en", "de")
        assert (message.model, message.mime_type, message.request_id) == ("en-de", "text/xml", "a")
        assert (message.options.max_target_tokens, message.options.mean_log_probability) == (7, True)
        options = message.options
        assert (options.beam_size, options.length_penalty, options.alternatives) == (4, 0.5, 3)
        assert (options.target_prefix, options.alignments, options.quality_estimate) == ("Guten", True, True)
        assert options.sampling == pb.Sampling(temperature=0.5, top_k=3, top_p=0.75, seed=7)
        terms = [(entry.source_term, list(entry.target_terms)) for entry in options.glossary.entries]
        assert terms == [("house", ["Haus"]), ("Tom", []), ("home", ["Heim", "Haus"])]
        assert (list(options.glossary.names), options.protect_placeholders) == (["products.en-de"], True)
        assert options.xml_tags == pb.XmlTags(splitting=["p"], kept=["x"])
        assert message.priority == pb.PRIORITY_BULK


def test_without_options_every_field_has_its_default() -> None:
    assert request_of("a", all_or_nothing=False) == pb.TranslateTextRequest(contents=["a"], options={})
    for field in ("max_target_tokens", "length_penalty"):
        assert not request_of("a", all_or_nothing=False).options.HasField(field)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_one_text_is_a_list_of_one_and_several_stay_as_they_are(texts: list[str]) -> None:
    assert list(request_of(texts, all_or_nothing=False).contents) == texts
    assert list(request_of(tuple(texts), all_or_nothing=False).contents) == texts
    for text in texts:
        assert list(request_of(text, all_or_nothing=False).contents) == [text]


@pytest.mark.parametrize(("name", "least"), [("temperature", 0.0), ("top_k", 0), ("top_p", 0.0), ("seed", 0)])
def test_any_option_of_draws_asks_for_them_and_the_others_are_left_out(name: str, least: float) -> None:
    options = config_of(in_order=False, **{name: least}).options
    assert options.HasField("sampling")
    for field in ("temperature", "top_p", "seed"):
        assert options.sampling.HasField(field) is (field == name)
    assert not config_of(in_order=False, **{name: None}).options.HasField("sampling")


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("max_target_tokens", "the limit of the model"),
        ("beam_size", "16"),
        ("alternatives", "16"),
        ("top_k", f"{2**32 - 1}"),
        ("seed", f"{2**32 - 1}"),
    ],
)
@pytest.mark.parametrize("number", [-1, 2**32])
def test_a_number_out_of_range_is_named(name: str, most: str, number: int) -> None:
    with pytest.raises(ValueError, match=f"{name} must be 0 to {most}, is {number}"):
        config_of(in_order=False, **{name: number})


@pytest.mark.parametrize("name", ["length_penalty", "temperature", "top_p"])
@pytest.mark.parametrize("number", [10**400, -(10**400)])
def test_a_number_that_no_float_holds_is_named(name: str, number: int) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be .* 1.8e.308"):
        config_of(in_order=False, **{name: number})


@pytest.mark.parametrize("penalty", [0, 0.0, -10, 2.5])
def test_a_length_penalty_is_sent_where_it_is_given_whole_or_not(penalty: float) -> None:
    options = config_of(in_order=False, length_penalty=penalty).options
    assert options.HasField("length_penalty")
    assert options.length_penalty == penalty
    with pytest.raises(TypeError, match="length_penalty: must be float, is str"):
        config_of(in_order=False, length_penalty=str(penalty))


def test_a_misspelt_option_is_told_what_was_meant() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'modell'; did you mean model\?"):
        config_of(in_order=False, modell="x")
    with pytest.raises(TypeError, match=r"'all_or_nothin'; did you mean all_or_nothing\?"):
        request_of("a", all_or_nothing=False, all_or_nothin=True)
    for name in ("html", "sampling"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'$"):
            config_of(in_order=False, **{name: True})


def test_an_option_of_a_wrong_type_is_named_and_one_that_is_none_is_left_out() -> None:
    with pytest.raises(TypeError, match="source_language: must be str, is int"):
        config_of(in_order=False, source_language=3)
    with pytest.raises(TypeError, match="kept_tags: must be a sequence of str, is str"):
        config_of(in_order=False, kept_tags="x")
    with pytest.raises(ValueError, match="kept_tags: must be names of elements, such as b, has '<b>'"):
        config_of(in_order=False, kept_tags=["a:b", "<b>"])
    with pytest.raises(TypeError, match="glossaries: must be a sequence of str, has 5"):
        config_of(in_order=False, glossaries=["a", 5])
    with pytest.raises(TypeError, match="in_order: must be bool, is str"):
        config_of(in_order="no")  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"glossary\[1\]: must be a GlossaryEntry, or a term and its translations, is dict"
    ):
        config_of(in_order=False, glossary=[("a", ("b",)), {"a": "b"}])
    assert not config_of(in_order=False, max_target_tokens=None).options.HasField("max_target_tokens")


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (b"a", "texts: must be str or a sequence of str, is bytes"),
        (3, "texts: .* is int"),
        (None, "texts: .* is NoneType"),
        ((text for text in "ab"), "texts: .* is generator"),
        (map(str, "ab"), "texts: .* is map"),
        ({"a": 1}, "texts: .* is dict"),
        ({"a"}, "texts: .* is set"),
        (["a", 5], r"texts\[1\]: must be str, is int"),
    ],
)
def test_what_is_no_text_is_named(texts: Any, said: str) -> None:
    others = "" if isinstance(texts, list) else "; translate_many takes any iterable of str"
    with pytest.raises(TypeError, match=f"^{said}{others}$"):
        request_of(texts, all_or_nothing=False)
    with pytest.raises(TypeError, match=f"^{said}$"):
        detect_request_of(texts)
    with pytest.raises(TypeError, match=f"^{said.replace('texts', 'translations')}$"):
        score_request_of("a", texts, all_or_nothing=False)


@pytest.mark.parametrize("texts", [deque("ab"), {1: "a", 2: "b"}.values()])
def test_other_collections_with_an_order_are_texts(texts: Any) -> None:
    assert list(request_of(texts, all_or_nothing=False).contents) == ["a", "b"]


def test_the_options_stand_in_the_signature() -> None:
    @shows_options
    def call(text: str, *, timeout_s: float = 1.0, **options: object) -> None: ...

    shown = inspect.signature(call).parameters
    assert list(shown) == ["text", "timeout_s", *Options.__annotations__]


@pytest.mark.parametrize(
    ("glossary", "error", "said"),
    [
        ({"a": 5}, TypeError, "glossary['a']: must be a sequence of str, is int"),
        ({"a": [5]}, TypeError, "glossary['a'][0]: must be str, is int"),
        ({5: "a"}, TypeError, "glossary: a term must be str, is int"),
        ([("a", "Haus")], TypeError, "glossary['a']: must be a sequence of str, is str"),
        ({"a": "\ud800"}, ValueError, "glossary['a'][0]: half a surrogate pair is no character"),
    ],
)
def test_a_term_of_a_wrong_type_is_named(glossary: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(said)}$"):
        config_of(in_order=False, glossary=glossary)
