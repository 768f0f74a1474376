"""The vocabulary file of a SentencePiece model: the translation model's id of each piece."""

import json
from collections.abc import Sequence
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from dragoman.errors import BundleError


class Vocabulary:
    """A SentencePiece model whose pieces have other ids in the translation model. Thread-safe.

    The file is a JSON list with an entry for each id: a string is a piece; null is an id without text, such as the end
    of a sentence or a language, which no text can produce. The unknown piece of SentencePiece must be in the list; its
    id is also that of all pieces that are not in the list.

    Attributes:
        processor: the SentencePiece model.
        unknown_id: the id of the unknown piece.
    """

    def __init__(self, processor: SentencePieceProcessor, pieces: Sequence[str | None], origin: Path) -> None:
        """Combine the SentencePiece model with the ids.

        Args:
            processor: the SentencePiece model.
            pieces: the content of the file.
            origin: the path of the file, for errors.

        Raises:
            BundleError: a piece is in the list twice, or the unknown piece is missing.
        """
        self.processor = processor
        self._size = len(pieces)
        self._unknown = processor.unk_id()
        ids = {piece: id_ for id_, piece in enumerate(pieces) if piece is not None}
        if len(ids) + sum(piece is None for piece in pieces) != len(pieces):
            raise BundleError(f"{origin}: a piece is there twice")
        own: list[str] = processor.id_to_piece(list(range(processor.get_piece_size())))
        unknown = own[self._unknown]
        if unknown not in ids:
            raise BundleError(f"{origin}: no {unknown!r}, the piece of the tokenizer for what is unknown")
        self.unknown_id = ids[unknown]
        self._ids = [ids.get(piece, self.unknown_id) for piece in own]
        # For each id the index of its piece in the SentencePiece model, or the piece itself if that model lacks it.
        self._own: list[int | str | None] = list(pieces)
        for position, id_ in enumerate(self._ids):
            self._own[id_] = position
        self._own[self.unknown_id] = None
        # SentencePiece returns such a piece only for a whole run of unknown text.
        self._foreign = {piece: id_ for id_, piece in enumerate(self._own) if isinstance(piece, str)}

    @classmethod
    def of(cls, processor: SentencePieceProcessor, content: bytes, origin: Path) -> "Vocabulary":
        """Read the content of the file.

        Raises:
            BundleError: the content is no list of strings and null, or does not fit the SentencePiece model.
        """
        try:
            pieces = json.loads(content)
        except ValueError as error:
            raise BundleError(f"{origin}: cannot read the vocabulary: {error}") from error
        if not (isinstance(pieces, list) and all(piece is None or isinstance(piece, str) for piece in pieces)):
            raise BundleError(f"{origin}: cannot read the vocabulary: it must be a list of strings and null")
        return cls(processor, pieces, origin)

    def __len__(self) -> int:
        return self._size

    def encode(self, text: str) -> list[int]:
        """Turn a text into ids: by a table of ids, which is fast; by pieces only if one piece is unknown."""
        own: list[int] = self.processor.encode(text)
        if self._unknown in own:
            return self._of_pieces(self.processor.encode(text, out_type=str))
        return [self._ids[id_] for id_ in own]

    def candidates(self, text: str, count: int) -> list[list[int]]:
        """Find the best segmentations of a text."""
        return [self._of_pieces(pieces) for pieces in self.processor.nbest_encode(text, nbest_size=count, out_type=str)]

    def decode(self, ids: Sequence[int]) -> str:
        """Turn ids into text; ids without text are left out."""
        return self.processor.decode(self._decodable(ids))  # type: ignore[no-any-return]

    def decode_spans(self, ids: Sequence[int]) -> tuple[str, list[tuple[int, int]]]:
        """Turn ids into text, and give the characters [start, stop) of each id in the text."""
        text, found = decode_spans(self.processor, self._decodable(ids))
        spans: list[tuple[int, int]] = []
        of_pieces = iter(found)
        end = 0
        for id_ in ids:
            start, end = (end, end) if self._own[id_] is None else next(of_pieces)
            spans.append((start, end))
        return text, spans

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Give the piece of each id; an id without text gives its number in angle brackets."""
        spell = self.processor.id_to_piece
        own = [self._own[id_] for id_ in ids]
        return [
            f"<{id_}>" if piece is None else piece if isinstance(piece, str) else spell(piece)
            for id_, piece in zip(ids, own, strict=True)
        ]

    def _decodable(self, ids: Sequence[int]) -> list[int] | list[str]:
        """Give the input of SentencePiece's decoder; ids without text are left out."""
        own = [piece for id_ in ids if (piece := self._own[id_]) is not None]
        if any(isinstance(piece, str) for piece in own):
            spell = self.processor.id_to_piece
            return [piece if isinstance(piece, str) else spell(piece) for piece in own]
        return own  # type: ignore[return-value]

    def _of_pieces(self, pieces: Sequence[str]) -> list[int]:
        own = self.processor.piece_to_id(list(pieces))
        return [
            self._ids[id_] if id_ != self._unknown else self._foreign.get(piece, self.unknown_id)
            for id_, piece in zip(own, pieces, strict=True)
        ]


def decode_spans(processor: SentencePieceProcessor, pieces: list[int] | list[str]) -> tuple[str, list[tuple[int, int]]]:
    """Turn pieces of a SentencePiece model, or their ids, into text, and find the characters of each piece."""
    found = processor.decode(pieces, return_type="offset_mapping")
    return found["text"], found["offsets"]
