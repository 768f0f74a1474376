"""Text to ids and back: the same code in training, parity and serving, so that there is no skew."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sentencepiece import SentencePieceProcessor

from dragoman.errors import BundleError

JOINT = "tokenizer.model"
SOURCE = "source.model"
TARGET = "target.model"


class Tokenizer:
    """A SentencePiece model (Kudo and Richardson, arXiv:1808.06226), joint or one a side. Thread-safe."""

    def __init__(self, source: SentencePieceProcessor, target: SentencePieceProcessor) -> None:
        self._source = source
        self._target = target

    @classmethod
    def open(cls, folder: Path) -> "Tokenizer":
        """Load `tokenizer.model`, or `source.model` and `target.model`, from a checkpoint or bundle.

        Raises:
            BundleError: no tokenizer there, or an unreadable one.
        """
        files = [folder / name for name in tokenizer_files(folder)]
        try:
            return cls.of({file: file.read_bytes() for file in files})
        except OSError as error:
            raise BundleError(f"{folder}: cannot read the tokenizer: {error}") from error

    @classmethod
    def of(cls, files: Mapping[Path, bytes]) -> "Tokenizer":
        """Load a joint model, or that of the source and that of the target, from the bytes of their files.

        Raises:
            BundleError: they are no SentencePiece models.
        """
        processors = []
        for file, content in files.items():
            processor = SentencePieceProcessor()
            try:
                processor.LoadFromSerializedProto(content)
            except RuntimeError as error:
                raise BundleError(f"{file}: cannot read the tokenizer: {error}") from error
            processors.append(processor)
        return cls(processors[0], processors[-1])

    @property
    def vocabulary_sizes(self) -> tuple[int, int]:
        """Pieces of the source and of the target side."""
        return self._source.get_piece_size(), self._target.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Turn a source text into ids, without the end-of-sentence id."""
        return self._source.encode(text)  # type: ignore[no-any-return]

    def encode_target(self, text: str) -> list[int]:
        """Turn a target text into ids, without the end-of-sentence id."""
        return self._target.encode(text)  # type: ignore[no-any-return]

    def candidates(self, text: str, count: int) -> list[list[int]]:
        """Find the `count` best segmentations of a source text, best first (arXiv:1804.10959)."""
        return self._source.nbest_encode(text, nbest_size=count) or [[]]

    def decode(self, ids: Sequence[int]) -> str:
        """Turn target ids into text."""
        return self._target.decode(list(ids))  # type: ignore[no-any-return]


def tokenizer_files(folder: Path) -> list[str]:
    """Name the tokenizer files that lie in a folder.

    Raises:
        BundleError: none does.
    """
    for names in ([JOINT], [SOURCE, TARGET]):
        if all((folder / name).is_file() for name in names):
            return names
    raise BundleError(f"{folder}: no {JOINT}, nor {SOURCE} and {TARGET}")
