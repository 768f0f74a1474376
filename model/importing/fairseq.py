"""The common part of M2M100, NLLB and mBART: SentencePiece pieces with fairseq's ids, then languages."""

from collections.abc import Mapping
from typing import Final

from dragoman.errors import DataError
from dragoman.tokenizer import JOINT, VOCABULARY
from model.importing import tokenizers
from model.importing.source import Source

# fairseq has these before all pieces; SentencePiece has <unk>, <s> and </s>, so its ids are lower by one.
HEAD: Final = ("<s>", "<pad>", "</s>", "<unk>")
_OWN_HEAD: Final = ["<unk>", "<s>", "</s>"]
_MASK: Final = "<mask>"


def with_offset(source: Source, name: str, rows: int) -> tuple[dict[str, bytes], int]:
    """Make the tokenizer's files if the ids are SentencePiece's ids plus one.

    Args:
        source: the folder.
        name: the name of the SentencePiece file.
        rows: the number of rows of the model's embedding.

    Returns:
        The files, and the number of ids before the first language.

    Raises:
        DataError: the file is missing or invalid, or has more pieces than the model.
    """
    content = tokenizers.sentencepiece_file(source, name)
    processor = tokenizers.processor(content, source.folder / name)
    pieces: list[str] = processor.id_to_piece(list(range(processor.get_piece_size())))
    if pieces[:3] != _OWN_HEAD:
        raise DataError(f"{source.folder / name}: begins with {', '.join(pieces[:3])}, not with {', '.join(_OWN_HEAD)}")
    ids = {piece: id_ for id_, piece in enumerate([*HEAD, *pieces[3:]])}
    return _files(source, name, content, ids, rows), len(HEAD) + len(pieces) - 3


def with_vocabulary(source: Source, name: str, rows: int) -> tuple[dict[str, bytes], int]:
    """Make the tokenizer's files if vocab.json defines the ids; returns and raises as `with_offset` does."""
    content = tokenizers.sentencepiece_file(source, name)
    ids = tokenizers.json_ids(source, "vocab.json")
    if [ids.get(piece) for piece in HEAD] != list(range(len(HEAD))):
        raise DataError(f"{source.folder}: vocab.json must begin with {', '.join(HEAD)}")
    return _files(source, name, content, ids, rows), len(ids)


def _files(source: Source, name: str, content: bytes, ids: Mapping[str, int], rows: int) -> dict[str, bytes]:
    control = {*HEAD, _MASK, *tokenizers.special_tokens(source)}
    vocabulary = tokenizers.as_file(tokenizers.vocabulary_file(source, name, ids, rows, control))
    tokenizers.check_fit(content, vocabulary, source.folder / name)
    return {JOINT: content, VOCABULARY: vocabulary}


def language_ids(source: Source, first: int, rows: int, default: tuple[str, ...] = ()) -> dict[str, int]:
    """Find the ids of the languages, by their tokens such as deu_Latn, de_DE and __de__.

    Args:
        source: the folder.
        first: the first id after the pieces, used for languages without an id in any file.
        rows: the number of rows of the model's embedding.
        default: the language tokens if no file names any.

    Raises:
        DataError: there are no languages, or an id is beyond the model's rows.
    """
    listed = [token for token in tokenizers.special_tokens(source) or default if token not in (*HEAD, _MASK)]
    given = tokenizers.added_tokens(source)
    tokens = listed or [token for token in given if token not in (*HEAD, _MASK)]
    ids = {token: given.get(token, first + place) for place, token in enumerate(tokens)}
    if not ids:
        raise DataError(f"{source.folder}: no file says the languages ({tokenizers.SPECIAL_TOKENS} and others do)")
    beyond = [token for token, id_ in ids.items() if id_ >= rows]
    if beyond:
        raise DataError(f"{source.folder}: {beyond[0]} has the id {ids[beyond[0]]}, and the model {rows} pieces")
    return ids
