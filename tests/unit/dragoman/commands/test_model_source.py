from typing import Any

import pytest

from dragoman.answers import Model
from dragoman.commands.model_source import choose
from dragoman.errors import InvalidRequestError, UnknownLanguagePairError, UnknownModelError


def model(name: str, source: str, target: str) -> Model:
    numbers: dict[str, Any] = {"max_source_tokens": 1, "max_target_tokens": 1, "vocabulary_size": 1}
    languages: dict[str, Any] = {"source_languages": (source,), "target_languages": (target,), "family": ""}
    return Model(name, source, target, "int8", checkpoint_sha256="", **languages, **numbers)


MODELS = [
    model("a", "en", "de"),
    model("b", "en", "fr"),
    model("c", "en-GB", "fr"),
    model("d", "de", "en"),
    model("e", "de", "en"),
]


@pytest.mark.parametrize(
    ("name", "source", "target", "chosen"),
    [
        ("e", "", "", "e"),
        ("e", "de", "en", "e"),
        ("", "en", "de", "a"),
        ("", "", "de", "a"),
        ("", "en-GB", "fr", "c"),
        ("", "en-US", "FR", "b"),
        ("", "en", "fr", "b"),
    ],
)
def test_chosen(name: str, source: str, target: str, chosen: str) -> None:
    assert choose(MODELS, name, source, target).name == chosen


@pytest.mark.parametrize(
    ("source", "target", "named"), [("", "", "abcde"), ("en", "", "ab"), ("", "fr", "bc"), ("de", "en", "de")]
)
def test_several_are_named(source: str, target: str, named: str) -> None:
    with pytest.raises(InvalidRequestError, match="there are several models") as caught:
        choose(MODELS, "", source, target)
    assert [other.name for other in MODELS if f"{other.name} ({other.source_language} to" in str(caught.value)] == list(
        named
    )


def test_none() -> None:
    with pytest.raises(UnknownModelError, match="no model 'x'; there are: a, b, c, d, e"):
        choose(MODELS, "x", "", "")
    with pytest.raises(UnknownModelError, match="there are: none"):
        choose([], "", "", "")
    with pytest.raises(UnknownLanguagePairError, match=r"from any language to it; there are: a \(en to de\)"):
        choose(MODELS[:1], "", "", "it")


def test_the_only_one_is_chosen() -> None:
    assert choose(MODELS[:1], "", "", "").name == "a"
