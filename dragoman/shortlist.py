"""Shortlists of Marian, such as lex.50.50.ende.s2t.bin of Firefox: the possible target pieces of each source piece.

The format is that of Marian's own reader (src/data/shortlist.cpp), little-endian: six numbers of eight bytes, then the
offset of the ids of each source piece, then the ids, four bytes each.
"""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError

_MAGIC: Final = 0xF11A48D5013417F5
_HEADER: Final = struct.Struct("<6Q")
_MULTIPLE: Final = 8  # candidates are filled up to a multiple of this, as Marian does for its products


class Shortlist:
    """The likely translations of each source piece.

    Attributes:
        source_pieces: the number of source pieces in the shortlist.
    """

    def __init__(self, content: bytes, origin: Path) -> None:
        """Read the content of a file.

        Args:
            content: the whole content of the file.
            origin: the path of the file, for errors.

        Raises:
            DataError: the content is no shortlist, or damaged.
        """
        self._origin = origin
        try:
            magic, _, first, _, count, ids = _HEADER.unpack_from(content)
        except struct.error as error:
            raise DataError(f"{origin}: no shortlist of Marian: {len(content)} bytes are too few") from error
        if magic != _MAGIC:
            raise DataError(f"{origin}: no shortlist of Marian in its binary form")
        size = _HEADER.size + 8 * count + 4 * ids
        if count < 1 or size != len(content):
            raise DataError(f"{origin}: the shortlist has {len(content)} bytes, its header says {size}")
        offsets = np.frombuffer(content, "<u8", count, _HEADER.size)
        if offsets[0] != 0 or offsets[-1] != ids or (offsets[1:] < offsets[:-1]).any():
            raise DataError(f"{origin}: the shortlist is damaged: its offsets do not rise from 0 to {ids}")
        self._first = first
        self._offsets = offsets.astype(np.int64)
        self._ids = np.frombuffer(content, "<u4", ids, _HEADER.size + 8 * count)
        self.source_pieces = count - 1

    def check(self, source_pieces: int, target_pieces: int) -> None:
        """Check that the shortlist fits the vocabularies of a model.

        Raises:
            DataError: the shortlist is for other vocabularies.
        """
        if self.source_pieces != source_pieces:
            raise DataError(
                f"{self._origin}: the shortlist has {self.source_pieces:,} source pieces, the model {source_pieces:,}"
            )
        largest = int(self._ids.max(initial=0))
        if largest >= target_pieces:
            raise DataError(
                f"{self._origin}: the shortlist has the id {largest}, the model {target_pieces:,} target pieces"
            )

    def candidates(
        self, source: Iterable[int], target_pieces: int, *, joint: bool, given: Iterable[int] = ()
    ) -> NDArray[np.int64]:
        """Compute the candidate target pieces of one segment, independent of the other segments of a batch.

        Args:
            source: the ids of the segment with the end-of-sentence id; ids outside the shortlist add no candidates.
            target_pieces: the size of the target vocabulary.
            joint: whether both sides share one vocabulary; then each source piece is a candidate too.
            given: target ids that are candidates for any source.

        Returns:
            Ids in rising order: the first ids of the vocabulary, the source pieces if joint, their translations, the
            given ids, and further ids, the lowest first, up to a multiple of eight.
        """
        pieces = np.unique(np.fromiter(source, np.int64))
        pieces = pieces[pieces < self.source_pieces]
        chosen = np.zeros(target_pieces, bool)
        chosen[: self._first] = True
        if joint:
            chosen[pieces] = True
        for piece in pieces:
            chosen[self._ids[self._offsets[piece] : self._offsets[piece + 1]]] = True
        chosen[np.fromiter(given, np.int64)] = True
        spare = np.flatnonzero(~chosen)
        missing = -int(chosen.sum()) % _MULTIPLE
        chosen[spare[:missing]] = True
        return np.flatnonzero(chosen)
