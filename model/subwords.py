"""Training of the SentencePiece tokenizer."""

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import sentencepiece

from dragoman.errors import DataError
from dragoman.tokenizer import JOINT, SOURCE, TARGET
from model.corpus import Corpus

# Parts of SentencePiece's messages: the number of pieces it needs, or that no sentence has text.
_TOO_FEW: Final = re.compile(r"Vocabulary size is smaller than required_chars\. \d+ vs (\d+)")
_NO_TEXT: Final = ("sentences_.empty()", "all_chars_count")
_LONGEST_BYTES: Final = 4192  # longer sentences are left out


def train_tokenizer(corpus: Corpus, folder: Path, *, vocabulary_size: int, joint: bool) -> tuple[int, ...]:
    """Write `tokenizer.model`, or `source.model` and `target.model`, with unigram pieces and byte fallback.

    Ids: 0 padding, 1 start, 2 end of sentence, 3 unknown. Bytes represent characters that the corpus does not
    contain, so every text can be encoded, and decoded again.

    Returns:
        The number of pieces of each model; less than `vocabulary_size` if the corpus does not contain enough.

    Raises:
        DataError: the vocabulary has no room for the characters of the corpus, or the corpus has no text.
    """
    sides = {JOINT: corpus.sources + corpus.targets} if joint else {SOURCE: corpus.sources, TARGET: corpus.targets}
    models = {name: _train(sentences, vocabulary_size) for name, sentences in sides.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in models.items():
        (folder / name).write_bytes(model)
    return tuple(sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size() for model in models.values())


def _train(sentences: Sequence[str], vocabulary_size: int) -> bytes:
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            vocab_size=vocabulary_size,
            hard_vocab_limit=False,
            max_sentence_length=_LONGEST_BYTES,
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
        raise DataError(f"cannot train a tokenizer of {vocabulary_size} pieces: {_why(str(error))}") from error
    return model.getvalue()


def _why(message: str) -> str:
    """Translate a message of SentencePiece into our terms."""
    if needed := _TOO_FEW.search(message):
        return f"the characters of the corpus alone need {needed[1]}; give --vocabulary-size {needed[1]} or more"
    if any(words in message for words in _NO_TEXT):
        return f"no sentence of the corpus has text of at most {_LONGEST_BYTES:,} bytes"
    return message
