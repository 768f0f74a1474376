import pytest

from dragoman.language import covers, is_code


@pytest.mark.parametrize("text", ["en", "EN", "gsw", "en-US", "zh-Hant-TW", "de-CH-1901"])
def test_codes(text: str) -> None:
    assert is_code(text)


@pytest.mark.parametrize("text", ["", "e", "English", "en_US", "-en", "en US", "en\n", "12", "ä", "en-a-b-c-d-e"])
def test_no_codes(text: str) -> None:
    assert not is_code(text)


@pytest.mark.parametrize(
    ("served", "asked", "expected"),
    [
        ("en", "en", True),
        ("en", "EN-us", True),
        ("en", "", True),
        ("en-US", "en", False),
        ("en", "eng", False),
        ("en", "de", False),
    ],
)
def test_covers(served: str, asked: str, expected: bool) -> None:
    assert covers(served, asked) == expected
