"""Changes the types of pieces in a SentencePiece file, in the wire format of protobuf."""

import re
from collections.abc import Iterator
from typing import Final

from dragoman.errors import DataError

# From `sentencepiece_model.proto`: ModelProto.pieces, and the text and type of a piece.
_PIECES: Final = 1
_TEXT: Final = 1
_TYPE: Final = 3
_CONTROL: Final = 3
_USER_DEFINED: Final = 4
# Marks that command the model; SentencePiece would find user-defined pieces in any text.
_MARK: Final = re.compile(r"^▁?(<[^<>\s]+>|>>[^<>\s]+<<)$")


def without_user_marks(content: bytes) -> bytes:
    """Turn user-defined pieces that look like marks, such as <2de>, into control pieces, which no text contains.

    Args:
        content: the content of a SentencePiece file.

    Returns:
        The file with changed types, or unchanged.

    Raises:
        DataError: the content is no such file.
    """
    parts: list[bytes] = []
    changed = False
    for number, raw, value in _fields(content):
        if number == _PIECES and isinstance(value, bytes) and _is_user_mark(value):
            entry = b"".join(part for inner, part, _ in _fields(value) if inner != _TYPE)
            entry += bytes([_TYPE << 3, _CONTROL])
            raw, changed = bytes([_PIECES << 3 | 2]) + _varint(len(entry)) + entry, True
        parts.append(raw)
    return b"".join(parts) if changed else content


def _is_user_mark(piece: bytes) -> bool:
    fields = {number: value for number, _, value in _fields(piece)}
    text = fields.get(_TEXT)
    if fields.get(_TYPE) != _USER_DEFINED or not isinstance(text, bytes):
        return False
    return _MARK.match(text.decode("utf-8", "replace")) is not None


def _fields(content: bytes) -> Iterator[tuple[int, bytes, int | bytes]]:
    """Iterate over the fields of a message: number, all bytes of the field, value."""
    at = 0
    while at < len(content):
        start = at
        tag, at = _read_varint(content, at)
        kind = tag & 7
        value: int | bytes
        if kind == 0:
            value, at = _read_varint(content, at)
        else:
            length, at = _read_varint(content, at) if kind == 2 else ({1: 8, 5: 4}.get(kind, -1), at)
            if length < 0 or at + length > len(content):
                raise DataError("not a SentencePiece file")
            value, at = content[at : at + length], at + length
        yield tag >> 3, content[start:at], value


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(content):
            break
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise DataError("not a SentencePiece file")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
