"""Connections that no client of gRPC would make: odd headers, frames in any order, floods, streams that never end."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.http2 import NO_MESSAGE, PREFACE, call_headers

_PATHS: Final = [
    b"/dragoman.v1.Translation/ListModels",
    b"/google.cloud.translation.v3.TranslationService/TranslateText",
    b"/dragoman.v1.Translation/TranslateText",
    b"/dragoman.v1.Translation/StreamTranslateText",
    b"/dragoman.v1.Translation/BatchTranslateText",
    b"/grpc.health.v1.Health/Check",
    b"/grpc.health.v1.Health/Watch",
    b"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    b"/no.such.Service/Method",
]
_NAMES: Final = [
    b":path", b":method", b":scheme", b":authority", b":status", b":protocol", b":foo", b"content-type", b"te",
    b"grpc-timeout", b"grpc-encoding", b"grpc-accept-encoding", b"grpc-status", b"grpc-previous-rpc-attempts",
    b"user-agent", b"host", b"content-length", b"connection", b"transfer-encoding", b"authorization", b"x-api-key",
    b"traceparent", b"grpc-trace-bin", b"x-bin", b"lb-token", b"X-UPPER", b"", b"x-\xff", b"\0",
]  # fmt: skip
_VALUES: Final = [
    b"", b"\xff", b"\xe4\xbd", b"\0", b"\r\n", b"-1S", b"99999999H", b"0n", b"9" * 200, b"gzip", b"GET", b"POST", b"/",
    b"*", b"http", b"trailers", b"application/grpc+json", b"Bearer \xff", b"a" * 3000, b"a" * 20_000, b"=,;\x7f",
]  # fmt: skip
_MAX_FLOOD: Final = 400
_MAX_STREAMS: Final = 60

Stream = Callable[[random.Random], bytes]


def draw(source: random.Random) -> bytes:
    """Draws what one connection sends, with or without a preface."""
    start = PREFACE + SettingsFrame(0).serialize()
    if source.random() < 0.1:
        start = source.choice([b"", PREFACE[:10], PREFACE, PREFACE + source.randbytes(40), source.randbytes(60)])
    return start + source.choice(_KINDS)(source)


def _calls_with_odd_headers(source: random.Random) -> bytes:
    """Calls one after the other, each with some headers missing, changed, repeated or in another order."""
    encoder, sent = Encoder(), b""
    for stream in range(1, 2 * source.randint(1, 10), 2):
        headers = call_headers(path=source.choice([*_PATHS, *_VALUES, source.randbytes(8)]))
        for _ in range(source.randint(0, 3)):
            change = source.randrange(4)
            if change == 0:
                headers.pop(source.randrange(len(headers)))
            elif change == 1:
                headers.insert(source.randint(0, len(headers)), (source.choice(_NAMES), source.choice(_VALUES)))
            elif change == 2:
                source.shuffle(headers)
            else:
                at = source.randrange(len(headers))
                headers[at] = headers[at][0], source.choice(_VALUES)
        block = encoder.encode(headers, huffman=source.random() < 0.5)[:16_000]
        sent += HeadersFrame(stream, block, flags=["END_HEADERS"]).serialize()
        sent += DataFrame(stream, source.choice([NO_MESSAGE, b"", b"\xff" * 9]), flags=["END_STREAM"]).serialize()
    return sent


def _frames_in_any_order(source: random.Random) -> bytes:
    return b"".join(_frame(source, source.choice(_FRAMES)) for _ in range(source.randint(1, 60)))


def _flood(source: random.Random) -> bytes:
    """One frame, or one kind of frame, again and again."""
    make = source.choice(_FRAMES)
    if source.random() < 0.5:
        return _frame(source, make) * _MAX_FLOOD
    return b"".join(_frame(source, make) for _ in range(_MAX_FLOOD))


def _half_open_streams(source: random.Random) -> bytes:
    """Calls that begin and never go on."""
    encoder, path = Encoder(), source.choice(_PATHS)
    frames = [
        HeadersFrame(stream, encoder.encode(call_headers(path=path)), flags=["END_HEADERS"]).serialize()
        for stream in range(1, 2 * source.randint(1, _MAX_STREAMS), 2)
    ]
    return b"".join(frames)


def _resets(source: random.Random) -> bytes:
    """Calls that are withdrawn as soon as they have begun."""
    encoder, path = Encoder(), source.choice(_PATHS)
    frames = []
    for stream in range(1, 2 * source.randint(1, _MAX_FLOOD), 2):
        headers = HeadersFrame(stream, encoder.encode(call_headers(path=path)), flags=["END_HEADERS"])
        frames += [headers.serialize(), RstStreamFrame(stream, error_code=source.randrange(16)).serialize()]
    return b"".join(frames)


def _headers_without_end(source: random.Random) -> bytes:
    """A header block in many frames, which never ends."""
    more = ContinuationFrame(1, Encoder().encode([(b"x-a", source.randbytes(200))])).serialize()
    return HeadersFrame(1, Encoder().encode(call_headers())).serialize() + more * source.randint(1, _MAX_FLOOD)


def _cut(source: random.Random) -> bytes:
    """Calls with bytes changed and the end missing."""
    sent = bytearray(_calls_with_odd_headers(source))
    for _ in range(source.randint(1, 20)):
        sent[source.randrange(len(sent))] = source.randrange(256)
    return bytes(sent[: source.randint(1, len(sent))])


def _frame(source: random.Random, make: Stream) -> bytes:
    frame = make(source)
    if source.random() < 0.1:  # other flags, another stream, another length than there is
        at = source.choice([2, 4, 8])
        frame = frame[:at] + source.randbytes(1) + frame[at + 1 :]
    return frame


def _stream(source: random.Random) -> int:
    return source.choice([0, 1, 1, 2, 3, 5, 2**31 - 1])


def _raw(source: random.Random) -> bytes:
    """A frame of any type, known or not, with any content."""
    content = source.randbytes(source.choice([0, 1, 4, 5, 8, 100]))
    kind, flags = source.randbytes(2)
    return len(content).to_bytes(3) + bytes([kind, flags]) + _stream(source).to_bytes(4) + content


_FRAMES: Final[tuple[Stream, ...]] = (
    _raw,
    lambda source: DataFrame(_stream(source) or 1, source.randbytes(source.choice([0, 5, 500]))).serialize(),
    lambda source: HeadersFrame(_stream(source) or 1, Encoder().encode(call_headers())).serialize(),
    lambda source: HeadersFrame(1, source.randbytes(30), flags=["END_HEADERS"]).serialize(),
    lambda source: PriorityFrame(_stream(source) or 1, depends_on=source.randrange(4)).serialize(),
    lambda source: RstStreamFrame(_stream(source) or 1, error_code=source.randrange(2**32)).serialize(),
    lambda source: SettingsFrame(0, {source.randrange(1, 10): source.randrange(2**32)}).serialize(),
    lambda source: SettingsFrame(0, flags=["ACK"]).serialize(),
    lambda source: PushPromiseFrame(1, promised_stream_id=2, data=b"").serialize(),
    lambda source: PingFrame(0, source.randbytes(8)).serialize(),
    lambda source: GoAwayFrame(0, last_stream_id=source.randrange(9), error_code=source.randrange(16)).serialize(),
    lambda source: WindowUpdateFrame(
        source.choice([0, 1, 3]), window_increment=source.choice([1, 2**16, 2**31 - 1])
    ).serialize(),
    lambda source: ContinuationFrame(_stream(source) or 1, source.randbytes(20)).serialize(),
)
_KINDS: Final[tuple[Stream, ...]] = (
    _calls_with_odd_headers,
    _calls_with_odd_headers,
    _frames_in_any_order,
    _flood,
    _half_open_streams,
    _resets,
    _headers_without_end,
    _cut,
)
