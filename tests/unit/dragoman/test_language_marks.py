from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dragoman.language_marks import LanguageMarks, Languages

NLLB = Languages(
    sources=("en", "de", "zh-Hans", "zh-Hant"),
    targets=("en", "de", "zh-Hans"),
    marks={
        "en": LanguageMarks(aliases=("eng_Latn",), source_prefix=(5,), target_prefix=(5,)),
        "de": LanguageMarks(aliases=("deu_Latn", ">>deu<<"), source_prefix=(6,), target_prefix=(6,)),
        "zh-Hans": LanguageMarks(aliases=("zho_Hans",), source_prefix=(7, 8), target_prefix=(7, 8)),
        "zh-Hant": LanguageMarks(source_prefix=(9,)),
    },
)


@pytest.mark.parametrize(
    ("asked", "source", "target"),
    [
        ("de", "de", "de"),
        ("DE-at", "de", "de"),
        ("deu_latn", "de", "de"),
        (">>deu<<", "de", "de"),
        ("zh-Hans-CN", "zh-Hans", "zh-Hans"),
        ("zh-Hant", "zh-Hant", None),
        ("zh", None, None),
        ("fr", None, None),
        ("de-", None, None),
        ("de DE", None, None),
        ("", None, None),
    ],
)
def test_a_language_is_found_by_code_or_alias(asked: str, source: str | None, target: str | None) -> None:
    assert NLLB.source(asked) == source
    assert NLLB.target(asked) == target


def test_the_only_language_need_not_be_named() -> None:
    pair = Languages.pair("en", "de")
    assert (pair.source(""), pair.target("")) == ("en", "de")
    assert pair.is_pair
    assert not NLLB.is_pair


def test_only_marks_of_sources_that_differ_have_to_be_told() -> None:
    assert NLLB.needs_source
    assert not Languages.pair("en", "de").needs_source
    to_many = Languages(
        sources=("en", "sv"),
        targets=("de", "nl"),
        marks={code: LanguageMarks(target_tag=(4,)) for code in ("de", "nl")},
    )
    assert not to_many.needs_source


def test_the_most_marks_are_counted() -> None:
    assert NLLB.longest_source_marks == 2
    assert NLLB.longest_target_prefix == 2
    tagged = Languages(
        sources=("en",),
        targets=("de",),
        marks={"en": LanguageMarks(source_prefix=(1,), source_suffix=(2,)), "de": LanguageMarks(target_tag=(3, 4))},
    )
    assert tagged.longest_source_marks == 4


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"sources": []}, "sources"),
        ({"targets": ["deu_Latn"]}, "targets"),
        ({"sources": ["en", "EN"]}, "en is there twice"),
        ({"marks": {"fr": {}}}, "fr is neither a source nor a target"),
        ({"marks": {"de": {"aliases": ["x"]}, "en": {"aliases": ["X"]}}}, "the alias 'X' is of de and of en"),
        ({"marks": {"de": {"target_prefix": [-1]}}}, "target_prefix"),
        ({"marks": {"de": {"target_prefix": [1] * 33}}}, "target_prefix"),
        ({"marks": {"de": {"prefix": [1]}}}, "prefix"),
    ],
)
def test_refuses(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Languages.model_validate({"sources": ["en"], "targets": ["de"]} | fields)


@given(st.lists(st.sampled_from(["en", "de", "de-CH", "zh-Hans"]), min_size=1, unique=True), st.text(max_size=12))
def test_whatever_is_asked_for_one_of_the_languages_is_found_or_none(served: list[str], asked: str) -> None:
    found = Languages(sources=tuple(served), targets=("fr",)).source(asked)
    assert found is None or found in served
