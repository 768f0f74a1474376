import pytest

from dragoman.language import covers, is_code, several


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


@pytest.mark.parametrize(("count", "expected"), [(0, ""), (1, "0"), (8, "0/1/2/3/4/5/6/7"), (9, "0/1/2/3/4/5/6/7/...")])
def test_a_message_names_only_as_many_as_a_line_has_room_for(count: int, expected: str) -> None:
    assert several([str(number) for number in range(count)], "/") == expected
