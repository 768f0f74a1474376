from service.options import RequestOptions
from service.text.segment_encoder import SegmentEncoder
from service.text.translator import Translator


class CountingTokenizer:
    """A token a character; says what it encoded."""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.encoded.append(text)
        return [5] * len(text)


def test_as_many_tokens_fit_as_are_allowed() -> None:
    encoder = SegmentEncoder(CountingTokenizer(), 3)
    assert [encoder.fits(piece) for piece in ("", "abc", "abcd")] == [True, True, False]
    assert encoder.ids("ab") == [5, 5]


def test_what_cannot_fit_is_not_encoded() -> None:
    tokenizer = CountingTokenizer()
    assert not SegmentEncoder(tokenizer, 3).fits("a" * 1_000_000)
    assert not tokenizer.encoded


def test_each_piece_of_a_text_is_encoded_once(manifest) -> None:
    for text, html in (("Tom. Good tom.\nWhere?", False), ("<p>Tom. <b>Good</b> tom.<p>Where?", True)):
        tokenizer = CountingTokenizer()
        Translator(manifest, tokenizer).prepare(text, RequestOptions(has_tags=html))
        assert tokenizer.encoded == ["Tom.", "Good tom.", "Where?"]
