"""Calls that no client of ours would make: odd texts, bytes that were requests once, and bytes that never were."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import NamedTuple

from google.protobuf.message import Message

from dragoman.v1 import translation_pb2 as pb

METHODS = ("TranslateText", "StreamTranslateText", "BatchTranslateText", "ScoreText", "ListModels")

_WORDS = [
    "the", "cat", "sat", "on", "a", "mat", ".", "Where", "is", "Tom", "?", "Mr.", "3.14", "http://x.y/z", "<b>",
    "&amp;", "I'm", ",", "“", "”", "—", "…",
]  # fmt: skip
_ODD = [
    "\0", "\x01", "\x7f", "\x85", "\u00ad", "\u200b", "\u200d", "\u200e", "\u202e", "\u2028", "\u2066", "\ufeff",
    "\ufffd", "\ufffe", "\uffff", "\U0001f469\u200d\U0001f4bb", "\U0010ffff", "e\u0301", "\u0301" * 40, "ﷺ", "שלום",
    "你好。", "ß", "İ", "\ud7ff", "\ue000", "\t", "\r\n", "\n\n\n", "\u3000", "▁", "<s>", "</s>", "<unk>", "%s",
]  # fmt: skip
# No UTF-8: surrogates, an overlong NUL, bytes that cannot occur, a character that is cut off, one beyond Unicode.
_NO_UTF8 = [b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xc0\x80", b"\xff", b"\xfe\xfe", b"\xe4\xbd", b"\xf4\x90\x80\x80"]
_VARINTS = [b"\xff" * 9 + b"\x01", b"\xff" * 10, b"\xff" * 11, b"\x80" * 9 + b"\0", b"\xff" * 4 + b"\x0f", b"\x80"]


class Call(NamedTuple):
    """One call, whatever becomes of it.

    Attributes:
        method: of the service.
        messages: what is sent, in order; a call of a unary method should have one, but may have any number.
    """

    method: str
    messages: tuple[bytes, ...]


def draw(source: random.Random) -> Call:
    """Draws a call."""
    method = source.choice(METHODS)
    count = 1
    if method == "BatchTranslateText":
        count = source.randint(0, 5)
    elif source.random() < 0.05:
        count = source.choice([0, 2, 3])
    return Call(method, tuple(_message(source, method, index) for index in range(count)))


def _message(source: random.Random, method: str, index: int) -> bytes:
    kind = source.random()
    if kind < 0.05:
        return source.randbytes(source.choice([0, 1, 2, 7, 60, 3000]))
    message = _request(source, method, index).SerializeToString()
    if kind < 0.45:
        return message
    for _ in range(source.randint(1, 4)):
        message = source.choice(_MUTATIONS)(source, message)
    return message


def _request(source: random.Random, method: str, index: int) -> Message:
    if method == "ListModels":
        sizes, tokens = [0, 0, 1, 2, 2**31 - 1, -1, -(2**31)], ["", "", "en-de", "a", text(source)]
        return pb.ListModelsRequest(page_size=source.choice(sizes), page_token=source.choice(tokens))
    if method == "BatchTranslateText":
        first = index == 0 if source.random() < 0.95 else source.random() < 0.5
        if first:
            return pb.BatchTranslateTextRequest(config=_fields(source, pb.BatchTranslateTextConfig()))
        return pb.BatchTranslateTextRequest(contents=_texts(source))
    all_or_nothing = source.random() < 0.5
    if method == "ScoreText":
        texts = _texts(source)
        pairs = [pb.TextPair(source_text=each, target_text=text(source)) for each in texts]
        return _addressed(source, pb.ScoreTextRequest(pairs=pairs, all_or_nothing=all_or_nothing))
    request = pb.TranslateTextRequest(contents=_texts(source), all_or_nothing=all_or_nothing)
    return _fields(source, request)


def _addressed(source: random.Random, message: Message) -> Message:
    """Sets the fields that all requests have in common; to what is valid, most of the time."""

    def rarely(odd: Callable[[], object], else_: object) -> object:
        return odd() if source.random() < 0.02 else else_

    def odd_text() -> str:
        return source.choice(["", "x" * 5000, "EN", "en-US", "zz", "text/html", text(source)])

    values = {
        "source_language_code": rarely(odd_text, "en"),
        "target_language_code": rarely(odd_text, "de"),
        "model": rarely(odd_text, source.choice(["", "en-de"])),
        "mime_type": rarely(odd_text, source.choice(["", "", "", "text/plain", "text/html", "text/xml"])),
        "request_id": rarely(odd_text, source.choice(["", "a-1"])),
        "priority": rarely(lambda: source.randint(-(2**31), 2**31 - 1), source.randint(0, 2)),
    }
    for name, value in values.items():
        if name in message.DESCRIPTOR.fields_by_name:
            setattr(message, name, value)
    return message


def _fields(source: random.Random, message: Message) -> Message:
    """Sets the fields that requests for translations have in common."""
    _addressed(source, message)
    if source.random() < 0.3:
        message.options.max_target_tokens = source.choice([0, 1, 7, 60, 2**32 - 1])  # type: ignore[attr-defined]
        message.options.mean_log_probability = source.random() < 0.5  # type: ignore[attr-defined]
        message.options.alignments = source.random() < 0.5  # type: ignore[attr-defined]
    if source.random() < 0.2:
        message.options.beam_size = source.choice([0, 1, 2, 4, 17, 2**32 - 1])  # type: ignore[attr-defined]
        message.options.target_prefix = source.choice(["", "Guten", " ", "x" * 5_000, "\x00", "ja " * 200])  # type: ignore[attr-defined]
        message.options.alternatives = source.choice([0, 1, 2, 4, 17, 2**32 - 1])  # type: ignore[attr-defined]
        penalties = [0.0, 1.0, -1.0, 10.0, 1e-300, 11.0, float("nan"), float("inf")]
        message.options.length_penalty = source.choice(penalties)  # type: ignore[attr-defined]
    if source.random() < 0.1:
        sampling = message.options.sampling  # type: ignore[attr-defined]
        sampling.temperature = source.choice([0.0, 0.01, 1.0, 10.0, 11.0, float("nan"), float("-inf")])
        sampling.top_k = source.choice([0, 1, 5, 2**32 - 1])
        sampling.top_p = source.choice([0.0, 1e-300, 0.5, 1.0, 2.0, float("nan")])
        sampling.seed = source.choice([0, 7, 2**32 - 1])
    return message


def _texts(source: random.Random) -> list[str]:
    count = source.choice([1, 1, 1, 1, 1, 1, 2, 3, 8, 0])
    if source.random() < 0.002:
        return ["a"] * source.choice([1024, 1025, 5000])
    return [text(source) for _ in range(count)]


def text(source: random.Random) -> str:
    """Draws a text: words, odd characters, and characters from anywhere in Unicode."""
    parts = []
    for _ in range(int(min(source.expovariate(0.25), 60))):
        kind = source.random()
        if kind < 0.5:
            parts.append(source.choice(_WORDS) + " ")
        elif kind < 0.9:
            parts.append(source.choice(_ODD))
        else:
            parts.append(_character(source) * source.choice([1, 1, 1, 2, 30]))
    return "".join(parts)


def _character(source: random.Random) -> str:
    code = source.randrange(0x110000 - 0x800)
    return chr(code if code < 0xD800 else code + 0x800)  # no surrogates: those cannot be encoded


def _flip(source: random.Random, message: bytes) -> bytes:
    return _replace(source, message, 1, lambda byte: bytes([byte[0] ^ 1 << source.randrange(8)]) if byte else b"")


def _set(source: random.Random, message: bytes) -> bytes:
    return _replace(source, message, 1, lambda _: source.randbytes(1))


def _delete(source: random.Random, message: bytes) -> bytes:
    return _replace(source, message, source.randint(1, 8), lambda _: b"")


def _repeat(source: random.Random, message: bytes) -> bytes:
    return _replace(source, message, source.randint(1, 16), lambda part: part * source.choice([2, 3, 50]))


def _insert(source: random.Random, message: bytes) -> bytes:
    new = source.choice([source.randbytes(source.randint(1, 8)), *_NO_UTF8, *_VARINTS])
    return _replace(source, message, 0, lambda _: new)


def _truncate(source: random.Random, message: bytes) -> bytes:
    return message[: source.randint(0, len(message))]


def _splice(source: random.Random, message: bytes) -> bytes:
    other = _request(source, source.choice(METHODS), source.randint(0, 1)).SerializeToString()
    return message[: source.randint(0, len(message))] + other[source.randint(0, len(other)) :]


def _huge_length(source: random.Random, message: bytes) -> bytes:
    tag = bytes([source.randint(1, 15) << 3 | 2])
    return message + tag + source.choice(_VARINTS) + source.randbytes(3)


def _unknown_field(source: random.Random, message: bytes) -> bytes:
    tag = struct.pack("B", 0x80 | source.choice([0, 1, 2, 3, 4, 5, 6, 7])) + b"\x7f"
    return message + tag + source.randbytes(source.randint(0, 12))


def _nest(source: random.Random, message: bytes) -> bytes:
    """Appends groups in groups: of an unknown field 15, begun and (sometimes) ended."""
    depth = source.choice([5, 99, 101, 5000])
    return message + b"\x7b" * depth + (b"\x7c" * depth if source.random() < 0.5 else b"")


def _replace(source: random.Random, message: bytes, length: int, new: Callable[[bytes], bytes]) -> bytes:
    at = source.randint(0, max(0, len(message) - length))
    return message[:at] + new(message[at : at + length]) + message[at + length :]


_MUTATIONS = (
    _flip, _flip, _set, _delete, _repeat, _insert, _insert, _truncate, _splice, _huge_length, _unknown_field, _nest
)  # fmt: skip
