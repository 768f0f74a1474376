"""Pieces of a text to the ids that the model reads, and whether they are few enough."""

from typing import Final

from dragoman.tokenizer import Tokenizer

# The longest piece of a SentencePiece vocabulary by default; bounds the work of measuring an endless text.
CHARACTERS_PER_TOKEN: Final = 16


class SegmentEncoder:
    """Encodes the pieces of one text, each once: first it is asked whether a piece fits, and then for its ids.

    Attributes:
        max_tokens: see above.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self.max_tokens: Final = max_tokens
        self._last = ""
        self._ids: list[int] = []  # of the last piece

    def fits(self, piece: str) -> bool:
        """Tell whether a piece is short enough for the model."""
        if len(piece) > self.max_tokens * CHARACTERS_PER_TOKEN:
            return False
        if piece != self._last:
            self._last, self._ids = piece, self._tokenizer.encode(piece)
        return len(self._ids) <= self.max_tokens

    def ids(self, piece: str) -> list[int]:
        """Give the ids of a piece, without the end-of-sentence id; none where the model sees nothing in it."""
        if piece != self._last:
            self._last, self._ids = piece, self._tokenizer.encode(piece)
        return self._ids
