"""A tiny but real model: its sizes, its texts, and what it is handed over as. `synthetic_model.py` makes it.

This module needs no torch, which takes seconds to import: `make check` collects tests of the model, and runs none.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dragoman.bundle import Bundle
from dragoman.tokenizer import Tokenizer
from model.corpus import read_corpus

if TYPE_CHECKING:
    from model.transformer import Transformer

CORPUS = Path(__file__).parent / "data" / "en-de.tsv"
VOCABULARY = 400
MAX_SOURCE_TOKENS = 28
MAX_TARGET_TOKENS = 24


class Synthetic(NamedTuple):
    """A bundle and the checkpoint it was made from."""

    bundle: Bundle
    model: Transformer
    tokenizer: Tokenizer


def texts() -> list[str]:
    """English sentences that are short enough for the model."""
    return sorted(read_corpus(CORPUS).sources, key=len)[:16]
