"""The tokenizer files of a checkpoint: SentencePiece models, and vocabularies with the id of each piece."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from sentencepiece import SentencePieceProcessor

from dragoman.errors import BundleError, DataError
from dragoman.language import several
from dragoman.vocabulary import Vocabulary
from model.importing.sentencepiece_file import without_user_marks
from model.importing.source import Source

TOKENIZER_CONFIG: Final = "tokenizer_config.json"
SPECIAL_TOKENS: Final = "special_tokens_map.json"
TOKENIZER: Final = "tokenizer.json"
ADDED_TOKENS: Final = "added_tokens.json"


def sentencepiece_file(source: Source, name: str, hint: str = "") -> bytes:
    """Read a SentencePiece file; pieces that look like marks are changed so that no text contains them.

    Raises:
        DataError: the file is missing (`hint` is added to the message), or is no such file.
    """
    if not source.has(name):
        raise DataError(f"{source.folder}: no {name}{hint}")
    content = source.bytes(name)
    processor(content, source.folder / name)
    return without_user_marks(content)


def processor(content: bytes, file: Path) -> SentencePieceProcessor:
    """Load a SentencePiece file.

    Raises:
        DataError: the content is no SentencePiece file.
    """
    loaded = SentencePieceProcessor()
    try:
        loaded.LoadFromSerializedProto(content)
    except RuntimeError as error:
        raise DataError(f"{file}: is no SentencePiece model, or damaged") from error
    return loaded


def vocabulary_file(
    source: Source, name: str, ids: Mapping[str, int], rows: int, control: Collection[str], unknown: str = "<unk>"
) -> list[str | None]:
    """List the pieces of a vocabulary by id, with None for control pieces and for rows without a piece.

    Args:
        source: the folder.
        name: the file with the ids, for errors.
        ids: the id of each piece.
        rows: the number of rows of the model's embedding.
        control: pieces that no text may contain.
        unknown: the piece for unknown text.

    Raises:
        DataError: an id is beyond the rows, or used twice, or the unknown piece is missing.
    """
    file = source.folder / name
    pieces: list[str | None] = [None] * rows
    taken: set[int] = set()
    for piece, id_ in ids.items():
        if not isinstance(id_, int) or not 0 <= id_ < rows:
            raise DataError(f"{file}: {piece!r:.60} has the id {id_!r:.20}, and the model {rows} pieces")
        if id_ in taken:
            raise DataError(f"{file}: the id {id_} is of two pieces, {piece!r:.60} is one")
        taken.add(id_)
        if piece == unknown or piece not in control:
            pieces[id_] = piece
    if unknown not in ids:
        raise DataError(f"{file}: no {unknown}, the piece for what is unknown")
    return pieces


def as_file(pieces: list[str | None]) -> bytes:
    """Write a vocabulary in the format of `dragoman/vocabulary.py`."""
    return (json.dumps(pieces, ensure_ascii=False, separators=(",\n", ":")) + "\n").encode()


def check_fit(content: bytes, vocabulary: bytes, file: Path) -> None:
    """Check that a SentencePiece model and a vocabulary fit together, as the server will combine them.

    Raises:
        DataError: the two do not fit together.
    """
    try:
        Vocabulary.of(processor(content, file), vocabulary, file)
    except BundleError as error:
        raise DataError(str(error)) from error


def json_ids(source: Source, name: str) -> dict[str, int]:
    """Read a file with the id of each piece.

    Raises:
        DataError: the file is missing or empty.
    """
    ids = source.json(name)
    if not ids:
        raise DataError(f"{source.folder}: no {name}, which gives each piece its id")
    return ids


def added_tokens(source: Source) -> dict[str, int]:
    """Collect the tokens of a tokenizer that are no pieces, with their ids, from all files that may name some.

    Raises:
        DataError: an entry is no token with an id.
    """
    found: dict[str, Any] = {}
    try:
        for entry in source.json(TOKENIZER).get("added_tokens") or []:
            found[entry["content"]] = entry["id"]
        found |= source.json(ADDED_TOKENS)
        for id_, entry in (source.json(TOKENIZER_CONFIG).get("added_tokens_decoder") or {}).items():
            found[entry["content"]] = id_
        return {str(token): int(id_) for token, id_ in found.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        files = several([TOKENIZER, ADDED_TOKENS, TOKENIZER_CONFIG])
        raise DataError(f"{source.folder}: of the added tokens in {files} one has no content or id") from error


def special_tokens(source: Source) -> list[str]:
    """List the further special tokens of a tokenizer, including languages, in order."""
    for name in (SPECIAL_TOKENS, TOKENIZER_CONFIG):
        settings = source.json(name)
        for key in ("additional_special_tokens", "extra_special_tokens"):
            if isinstance(settings.get(key), list) and settings[key]:
                return [_content(token) for token in settings[key]]
    return []


def _content(token: Any) -> str:
    return str(token["content"] if isinstance(token, dict) else token)
