import pytest

from plugins.language_names import name_of


@pytest.mark.parametrize(
    ("code", "name"),
    [("de", "German"), ("EN", "English"), ("pt-BR", "Portuguese (BR)"), ("zh-Hant", "Chinese (Hant)"), ("xx", "xx")],
)
def test_names(code: str, name: str) -> None:
    assert name_of(code) == name
