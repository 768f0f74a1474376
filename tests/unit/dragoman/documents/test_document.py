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
        ([], "de", "fr"),
    ],
)
def test_languages_that_fit_or_are_unknown_are_accepted(stated, source: str, target: str) -> None:
    check_languages(stated, source, target)


@pytest.mark.parametrize(
    ("stated", "source", "target", "words"),
    [
        ([("en", "fr")], "en", "de", "is for en to fr, not for en to de"),
        ([("en-GB", "de")], "fr", "de", "is for en-GB to de, not for fr to de"),
        ([("en", "de"), ("en", "fr")], "", "de", "is for en to fr, not for any to de"),
        ([("", "pt_BR")], "Auto", "fr", "is for any to pt_BR, not for any to fr"),
    ],
)
def test_other_languages_are_refused(stated, source: str, target: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        check_languages(stated, source, target)
