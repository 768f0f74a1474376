"""Other model formats, recognised by their files, so that a refusal can name them."""

from pathlib import Path
from typing import Final

# Patterns of file names, the most specific first.
_OTHERS: Final = (
    ("model.*.bin.*", "a model of Firefox whose files are packed: unpack them, as with gunzip"),
    ("*.npz", "a model of Marian (.npz) without decoder.yml, which names its vocabularies"),
    ("*.pt", "a model of fairseq or OpenNMT (.pt): not supported"),
    ("*.gguf", "a model of llama.cpp (.gguf): not supported"),
)


def other_format(folder: Path) -> str | None:
    """Name the format of a folder that is not Hugging Face's, and advise the user; None if it is not recognised."""
    return next((words for pattern, words in _OTHERS if any(folder.glob(pattern))), None)
