"""Training of the SentencePiece tokenizer."""

import io
from pathlib import Path

import sentencepiece

from dragoman.errors import DataError
from dragoman.tokenizer import JOINT, SOURCE, TARGET
from model.data import Corpus


def train_tokenizer(corpus: Corpus, folder: Path, *, vocabulary_size: int, joint: bool) -> None:
    """Write `tokenizer.model`, or `source.model` and `target.model`, of unigram pieces with byte fallback.

    Ids: 0 padding, 1 start, 2 end of sentence, 3 unknown. Bytes stand in for characters that the corpus does
    not show, so every text can be encoded, and decoded again.

    Raises:
        DataError: the corpus is too small for the vocabulary.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sides = {JOINT: corpus.sources + corpus.targets} if joint else {SOURCE: corpus.sources, TARGET: corpus.targets}
    for name, sentences in sides.items():
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences),
                model_writer=model,
                vocab_size=vocabulary_size,
                model_type="unigram",
                byte_fallback=True,
                character_coverage=0.9999,
                pad_id=0,
                bos_id=1,
                eos_id=2,
                unk_id=3,
                num_threads=2,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise DataError(f"cannot train a tokenizer of {vocabulary_size} pieces: {error}") from error
        (folder / name).write_bytes(model.getvalue())
