"""Translations of a model by plain PyTorch greedy decoding."""

from collections.abc import Sequence
from pathlib import Path

from dragoman.bundle import target_limit
from dragoman.errors import DataError
from dragoman.framing import Frame
from dragoman.tokenizer import Tokenizer
from model.config import TransformerConfig
from model.corpus import Corpus
from model.decoding import greedy
from model.transformer import Transformer

BATCH_SENTENCES = 256


def check_lengths(
    file: Path, corpus: Corpus, tokenizer: Tokenizer, config: TransformerConfig, frame: Frame | None = None
) -> None:
    """Check that every source of a file has as many tokens as a model has positions at most, as `translate` needs it.

    Raises:
        DataError: one has more; names its line.
    """
    frame = frame or Frame.of(None, config)
    for row, text in enumerate(corpus.sources):
        if (tokens := len(frame.around(tokenizer.encode(text)))) > config.max_positions:
            had = f"{tokens} tokens, the model {config.max_positions} positions"
            raise DataError(f"{file}: line {corpus.line(row)} has {had}")


def translate(model: Transformer, tokenizer: Tokenizer, texts: Sequence[str], frame: Frame | None = None) -> list[str]:
    """Translate texts greedily, texts of similar length together; returns the translations in the given order.

    Args:
        model: in evaluation mode.
        tokenizer: the tokenizer of the model.
        texts: the texts, each a segment.
        frame: the marks of the languages; None: a model for one pair without marks.

    Raises:
        DataError: a text has more tokens than the model has positions.
    """
    frame = frame or Frame.of(None, model.config)
    sources = [frame.around(tokenizer.encode(text)) for text in texts]
    order = sorted(range(len(texts)), key=lambda i: len(sources[i]))
    longest = max(map(len, sources), default=0)
    positions = model.config.max_positions
    if longest > positions:
        raise DataError(f"a text has {longest} tokens, the model {positions} positions")
    translations = [""] * len(texts)
    for start in range(0, len(order), BATCH_SENTENCES):
        rows = order[start : start + BATCH_SENTENCES]
        limits = [target_limit(len(sources[row]), positions - len(frame.start_ids[1:])) for row in rows]
        starts = [frame.start_ids] * len(rows) if frame.start_ids else None
        targets = greedy(model, [sources[i] for i in rows], max_target_tokens=limits[-1], start_ids=starts)
        for row, target, limit in zip(rows, targets, limits, strict=True):
            translations[row] = tokenizer.decode(target[:limit])
    return translations
