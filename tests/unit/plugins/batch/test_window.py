import pytest

from plugins.batch.window import Window

WINDOW = Window(texts=3, text_bytes=10)


@pytest.mark.parametrize(
    ("contents", "held", "sizes"),
    [
        (["a"] * 5, (0, 0), [1, 1, 1]),
        (["a"] * 5, (2, 2), [1]),
        (["a"], (3, 3), []),
        (["aaaaaa", "aaaa", "a"], (0, 0), [6, 4]),
        (["aaaaaa"], (1, 5), []),
        (["€€€", ""], (1, 1), [9, 0]),
        (["a" * 11, "a"], (0, 0), [11]),  # else it would wait for ever
        (["a" * 11], (1, 0), []),
        ([], (0, 0), []),
    ],
)
def test_as_many_texts_fit_as_are_fewer_and_smaller_than_what_is_left(contents, held, sizes) -> None:
    assert WINDOW.fitting(contents, *held) == sizes
