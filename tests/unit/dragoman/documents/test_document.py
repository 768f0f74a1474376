import re

import pytest

from dragoman.documents.document import check_languages


@pytest.mark.parametrize(
    ("stated", "source", "target"),
    [
        ([("en-US", "de")], "EN", "de-AT"),
        ([("", "pt_BR"), ("", "")], "en", "pt"),
        ([("en", "sr@latin")], "auto", "sr"),
        ([("fr", "de")], "auto", "de"),
        ([("fr", "de")], "", ""),
        ([("English", "-x-own")], "de", "fr"),
        ([("eng", "ger"), ("und", "mul"), ("qps-ploc", "xx"), ("", "LL")], "en", "de"),
        ([("", "iw"), ("", "he_IL")], "en", "he"),
        ([("", "no"), ("", "nn")], "en", "nb"),
        ([("en", "en-US"), ("", "en")], "en-GB", "de"),  # untranslated copies
        ([], "de", "fr"),
    ],
)
def test_languages_that_fit_or_are_unknown_are_accepted(stated, source: str, target: str) -> None:
    check_languages("a.po", [(*pair, "its header") for pair in stated], source, target)


def test_the_language_of_a_template_does_not_count() -> None:
    check_languages("a.POT", [("", "fr", "its header")], "en", "de")


@pytest.mark.parametrize(
    ("stated", "source", "target", "words"),
    [
        ([("en", "fr")], "en", "de", "for en to fr (its header), not for en to de"),
        ([("en-GB", "de")], "fr", "de", "for en-GB to de (its header), not for fr to de"),
        ([("en", "de"), ("en", "fr")], "", "de", "for en to fr (its header), not for any to de"),
        ([("", "pt_BR")], "Auto", "fr", "for pt_BR (its header), not for fr"),
    ],
)
def test_other_languages_are_refused(stated, source: str, target: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"says that it is {words}")):
        check_languages("a.po", [(*pair, "its header") for pair in stated], source, target)
