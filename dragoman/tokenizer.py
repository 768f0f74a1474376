"""Text to ids and back: training, parity tests and serving use the same code, so that they cannot differ."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from sentencepiece import SentencePieceProcessor

from dragoman.errors import BundleError
from dragoman.vocabulary import Vocabulary, decode_spans
from dragoman.word_starts import ends_word_before

JOINT: Final = "tokenizer.model"
SOURCE: Final = "source.model"
TARGET: Final = "target.model"
_ACUTE: Final = "´"  # typed for an apostrophe
_INVISIBLE: Final = "\u00ad\u200d\u2060"  # in words: the soft hyphen, the joiners
_DROPPED: Final = "\x7f"  # by the normalization of most tokenizers
# Optional files: they map the pieces of a SentencePiece model to the translation model's ids.
VOCABULARY: Final = "vocabulary.json"
SOURCE_VOCABULARY: Final = "source_vocabulary.json"
TARGET_VOCABULARY: Final = "target_vocabulary.json"


class Tokenizer:
    """A SentencePiece model (Kudo and Richardson, arXiv:1808.06226), joint or one for each side. Thread-safe.

    The ids are those of the translation model: without a vocabulary file, the ids of the SentencePiece model.
    """

    def __init__(
        self, source: SentencePieceProcessor | Vocabulary, target: SentencePieceProcessor | Vocabulary
    ) -> None:
        self._source = source
        self._target = target

    @classmethod
    def open(cls, folder: Path) -> "Tokenizer":
        """Load the files that `tokenizer_files` names, from a checkpoint or bundle.

        Raises:
            BundleError: the folder has no tokenizer, or an unreadable one.
        """
        files = [folder / name for name in tokenizer_files(folder)]
        try:
            return cls.of({file: file.read_bytes() for file in files})
        except OSError as error:
            raise BundleError(f"{folder}: cannot read the tokenizer: {error}") from error

    @classmethod
    def of(cls, files: Mapping[Path, bytes]) -> "Tokenizer":
        """Load a tokenizer from the bytes of its files.

        Args:
            files: the files that `tokenizer_names` names, in the same order.

        Raises:
            BundleError: a file is no SentencePiece model, or a vocabulary does not fit its model.
        """
        models = [_processor(file, content) for file, content in files.items() if file.suffix == ".model"]
        vocabularies = [(content, file) for file, content in files.items() if file.suffix == ".json"]
        if not vocabularies:
            return cls(models[0], models[-1])
        source = Vocabulary.of(models[0], *vocabularies[0])
        is_joint = len(models) == len(vocabularies) == 1
        return cls(source, source if is_joint else Vocabulary.of(models[-1], *vocabularies[-1]))

    @property
    def vocabulary_sizes(self) -> tuple[int, int]:
        """The number of pieces of the source side and of the target side."""
        return len(self._source), len(self._target)

    @property
    def source_processor(self) -> SentencePieceProcessor:
        """The SentencePiece model of the source side; its ids may differ from those of the translation model."""
        return self._source.processor if isinstance(self._source, Vocabulary) else self._source

    def readable(self, text: str) -> str:
        """Replace characters that the tokenizer has no pieces for, though it has pieces for their words.

        Returns:
            A text of the same length, in which an acute accent is an apostrophe, and soft hyphens and joiners are
            dropped by :meth:`encode`.
        """
        return text.translate(self._read)

    def encode(self, text: str) -> list[int]:
        """Turn a source text into ids, without the end-of-sentence id."""
        return self._source.encode(text)

    def encode_target(self, text: str) -> list[int]:
        """Turn a target text into ids, without the end-of-sentence id."""
        return self._target.encode(text)

    def candidates(self, text: str, count: int) -> list[list[int]]:
        """Find the `count` best segmentations of a source text, best first (arXiv:1804.10959)."""
        if isinstance(self._source, Vocabulary):
            return self._source.candidates(text, count) or [[]]
        return self._source.nbest_encode(text, nbest_size=count) or [[]]

    def decode(self, ids: Sequence[int]) -> str:
        """Turn target ids into text."""
        return self._target.decode(list(ids))

    def source_spans(self, text: str) -> list[tuple[int, int]]:
        """Find the span of each piece in a source text.

        Returns:
            For each id of :meth:`encode`, the characters [start, stop) of the text, without blanks. If a character is
            made of several pieces, each of them has its span. A piece of blanks alone has the span of the next piece;
            at the end of the text, an empty span.
        """
        return _without_blanks(text, self.source_processor.encode(text, return_type="offset_mapping")["offsets"])

    def target_spans(self, ids: Sequence[int]) -> tuple[str, list[tuple[int, int]]]:
        """Turn target ids into text, and find the span of each id in it.

        Returns:
            The text without blanks at its ends, and the span of each id in it, as :meth:`source_spans` gives them; an
            id without text has the span of a blank.
        """
        side = self._target
        text, offsets = side.decode_spans(ids) if isinstance(side, Vocabulary) else decode_spans(side, list(ids))
        stripped = text.strip()
        lead = len(text) - len(text.lstrip())
        return stripped, _without_blanks(stripped, [(start - lead, stop - lead) for start, stop in offsets])

    def is_written(self, sign: str) -> bool:
        """Tell whether a character comes out of the ids of the target side as it went in."""
        return self.decode(self.encode_target(sign)).strip() == sign

    @cached_property
    def _read(self) -> dict[int, str]:
        read = {} if self.is_written(_ACUTE) else {ord(_ACUTE): "'"}
        if not self.encode(_DROPPED):
            read |= {ord(sign): _DROPPED for sign in _INVISIBLE if not self._has_piece(sign)}
        return read

    def _has_piece(self, sign: str) -> bool:
        return any(sign in piece for piece in self.source_pieces(self.encode(sign)))

    @cached_property
    def begins_word(self) -> frozenset[int]:
        """Target ids before which a word ends: pieces that begin with a blank or with punctuation.

        Computed at first use, which takes a moment: one call for each piece.
        """
        pieces = self.target_pieces(range(len(self._target)))
        return frozenset(id_ for id_, piece in enumerate(pieces) if ends_word_before(piece))

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """Give the pieces of source ids, for people."""
        return _pieces(self._source, ids)

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        """Give the pieces of target ids, for people."""
        return _pieces(self._target, ids)


def _pieces(side: SentencePieceProcessor | Vocabulary, ids: Sequence[int]) -> list[str]:
    if isinstance(side, Vocabulary):
        return side.pieces(ids)
    size = len(side)
    return [side.id_to_piece(id_) if id_ < size else f"<{id_}>" for id_ in ids]


def _without_blanks(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Remove blanks from the spans of a text; a span that becomes empty gets the span of the next piece."""
    bare: list[tuple[int, int]] = []
    following = len(text), len(text)
    for start, stop in reversed(spans):
        piece = text[max(start, 0) : max(stop, 0)]
        if inside := piece.strip():
            begin = max(start, 0) + piece.index(inside)
            following = begin, begin + len(inside)
        bare.append(following)
    return bare[::-1]


def tokenizer_files(folder: Path) -> list[str]:
    """Name the tokenizer files in a folder.

    Raises:
        BundleError: the folder has none.
    """
    return tokenizer_names(lambda name: (folder / name).is_file(), folder)


def tokenizer_names(has: Callable[[str], bool], folder: Path) -> list[str]:
    """Name the files of a tokenizer: its SentencePiece models, then its vocabularies.

    Args:
        has: tells whether a file of this name exists.
        folder: the folder, for the error.

    Raises:
        BundleError: there is no tokenizer, or only one side has a vocabulary.
    """
    for models in ([JOINT], [SOURCE, TARGET]):
        if all(map(has, models)):
            break
    else:
        raise BundleError(f"{folder}: no {JOINT}, nor {SOURCE} and {TARGET}")
    if has(VOCABULARY):
        return [*models, VOCABULARY]
    apart = (SOURCE_VOCABULARY, TARGET_VOCABULARY)
    if has(SOURCE_VOCABULARY) != has(TARGET_VOCABULARY):
        raise BundleError(f"{folder}: {' and '.join(apart)} need each other")
    return [*models, *filter(has, apart)]


def is_joint(names: Sequence[str]) -> bool:
    """Tell from the file names of a tokenizer whether an id is the same piece on both sides."""
    return VOCABULARY in names or (JOINT in names and SOURCE_VOCABULARY not in names)


def _processor(file: Path, content: bytes) -> SentencePieceProcessor:
    processor = SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(content)
    except RuntimeError as error:
        raise BundleError(f"{file}: cannot read the tokenizer: {error}") from error
    return processor
