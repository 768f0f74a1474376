"""What no client of HTTP would send to the HTTP port: drawn from a seed, one connection at a time."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from tests.fuzz.calls import text

PATHS: Final = (
    "/", "/page/page.js", "/health", "/v1/models", "/v1/glossaries", "/v1/openapi.json", "/v1/translate",
    "/v1/translate:stream", "/v1/score", "/v1/detect", "/dragoman.v1.Translation/TranslateText",
    "/dragoman.v1.Translation/ListModels", "/translate", "/detect", "/languages", "/frontend/settings",
    "/v2/translate", "/v2/languages", "/v2/usage", "/v2/glossaries", "/v2/glossary-language-pairs", "/v2/document",
    "/translate_file", "/download_file/a", "/v2/document/a", "/v2/document/a/result", "/no/such/path", "*", "http://other.example/health",
)  # fmt: skip
METHODS: Final = (
    "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "BREW", "get", "",
)  # fmt: skip
_POSTED: Final = ("/v1/translate", "/v1/translate:stream", "/dragoman.v1.Translation/TranslateText", "/v1/score",
                  "/v1/detect", "/translate", "/detect", "/v2/translate")  # fmt: skip
_JSON: Final = b"content-type: application/json\r\n"
_FORM: Final = b"content-type: application/x-www-form-urlencoded\r\n"
_NO_UTF8: Final = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xe4\xbd", b"\xf4\x90\x80\x80")
_VALUES: Final = (
    "0",
    "-1",
    "1.5",
    "1e999",
    "NaN",
    "9" * 5_000,
    "null",
    "true",
    "[]",
    "{}",
    '""',
    '"\\ud800"',
    "[[[]]]",
)
_FIELDS: Final = ("contents", "model", "sourceLanguageCode", "options", "priority", "mimeType", "requestId", "glossary")
_ESCAPES: Final = ("%", "%2", "%zz", "%ff", "%c0%80", "%00", "%0d%0a", "%u1234", "+", "%25", "&&", "=", "a=b=c", ";")
_LENGTHS: Final = (b"-1", b"+5", b"0x5", b"5,5", b"", b" ", b"5 5", b"ten", b"9" * 40, b"4294967296", b"\xb2")
_SUFFIXES: Final = (".txt", ".html", ".srt", ".vtt", ".po", ".xlf", ".docx", ".odt", ".pptx", ".exe", "")
_CHUNK_SIZES: Final = (
    b"-1",
    b"xyz",
    b"",
    b"ffffffffffffffff",
    b"1" * 40,
    b"5;" + b"x" * 20_000,
    b"0x5",
    b"5 ",
    b"\x00",
)


class Drawn(NamedTuple):
    """What one connection sends.

    Attributes:
        kind: of the oddity.
        parts: what is sent, with a moment between.
        is_whole: whether the server owes an answer, or the end of the connection, without waiting for more.
        is_head: whether an answer has no body.
    """

    kind: str
    parts: Sequence[bytes]
    is_whole: bool = True
    is_head: bool = False


def draw(source: random.Random) -> Drawn:
    """Draw what one connection sends."""
    return _large(source) if source.random() < _LARGE_SHARE else source.choice(_KINDS)(source)


def _request(path: str, body: bytes, *headers: bytes, method: str = "POST") -> bytes:
    """A request that is right but for what it is given."""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n".encode()
    return head + b"".join(headers) + b"content-length: %d\r\n\r\n" % len(body) + body


def _good_body(source: random.Random, path: str) -> bytes:
    spoken = text(source) or "a"
    match path:
        case "/v1/score":
            body: dict[str, object] = {"pairs": [{"sourceText": spoken, "targetText": "ja"}], "model": "en-de"}
        case "/v1/detect":
            body = {"contents": [spoken]}
        case "/v2/translate":
            body = {"text": [spoken], "target_lang": "DE"}
        case "/detect":
            body = {"q": spoken}
        case "/translate":
            body = {"q": spoken, "source": "en", "target": "de"}
        case _:
            body = {"contents": [spoken], "model": "en-de"}
    return json.dumps(body).encode()


def _good(source: random.Random) -> bytes:
    path = source.choice(_POSTED)
    return _request(path, _good_body(source, path), _JSON)


def _odd_texts(source: random.Random) -> Drawn:
    return Drawn("odd texts", [_good(source)])


def _methods(source: random.Random) -> Drawn:
    method, path = source.choice(METHODS), source.choice(PATHS)
    body = source.choice([b"", b"{}", b"hello"])
    return Drawn("methods and paths", [_request(path, body, _JSON, method=method)], is_head=method == "HEAD")


def _request_lines(source: random.Random) -> Drawn:
    version = source.choice(["HTTP/1.1", "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/1.10", "HTTQ/1.1", "http/1.1", ""])
    path = source.choice(
        [*PATHS, "", "//", "/..", "/%", "/%ff", "/%00", "/" + "a" * 30_000, "/ä", "\\", "/a b", "?", "#"]
    )
    space, end = source.choice([" ", " ", " ", "  ", "\t", ""]), source.choice(["\r\n", "\r\n", "\n", "\r", "\0", ""])
    method = source.choice(["GET", "POST", "G\0T", " GET", "A" * 300])
    line = f"{method}{space}{path}{space}{version}{end}"
    return Drawn("request lines", [line.encode(errors="replace") + b"host: localhost\r\n\r\n"], is_whole=False)


def _header_floods(source: random.Random) -> Drawn:
    flood = source.choice([
        b"".join(b"x-%d: a\r\n" % number for number in range(source.choice([50, 500, 5_000]))),
        b"x: " + b"a" * source.choice([1_000, 15_000, 100_000]) + b"\r\n",
        b"x" * source.choice([1_000, 100_000]) + b": a\r\n",
        b"cookie: a=b\r\n" * source.choice([100, 2_000]),
        b"x-forwarded-for: " + b"1.2.3.4, " * source.choice([100, 2_000]) + b"\r\n",
    ])  # fmt: skip
    return Drawn("header floods", [_request("/v1/translate", b"{}", _JSON, flood)])


def _odd_headers(source: random.Random) -> Drawn:
    names = [b"x", b"", b" x", b"x ", b"x\0", b"\xff", b"host", b"connection", b"transfer-encoding", b"content-type",
             b"expect", b"authorization", b"x-api-key", b"connect-timeout-ms", b"connect-protocol-version", b"range",
             b"accept-encoding", b"if-none-match", b"x-forwarded-for", b"traceparent", b"x-request-id"]  # fmt: skip
    values = [b"", b"a", b"\xff", b"a\0b", b"a\r\n b", b"close", b"keep-alive", b"100-continue", b"identity", b"gzip",
              b"Bearer \xff", b"-1", b"9" * 30, b"bytes=0-1,2-3", b"*", b'"' * 50, b"a" * 2_000]  # fmt: skip
    odd = [source.choice(names) + b": " + source.choice(values) + b"\r\n" for _ in range(source.randint(1, 6))]
    path = source.choice(_POSTED)
    return Drawn("odd headers", [_request(path, _good_body(source, path), _JSON, *odd)], is_whole=False)


def _lengths(source: random.Random) -> Drawn:
    lengths = [
        b"content-length: " + source.choice([*_LENGTHS, b"5", b"6"]) + b"\r\n" for _ in range(source.randint(1, 3))
    ]
    if source.random() < 0.3:
        lengths.append(b"transfer-encoding: " + source.choice([b"chunked", b"chunked, identity", b"gzip"]) + b"\r\n")
    source.shuffle(lengths)
    head = b"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\n" + _JSON + b"".join(lengths) + b"\r\n"
    return Drawn("lengths of bodies", [head + source.choice([b"hello", b"0\r\n\r\n", b""])], is_whole=False)


def _chunks(source: random.Random) -> Drawn:
    body = _good_body(source, "/v1/translate")
    step = source.choice([1, 7, 100])
    chunks = [b"%x\r\n%s\r\n" % (len(body[at : at + step]), body[at : at + step]) for at in range(0, len(body), step)]
    odd = source.randrange(5)
    if odd == 0:
        chunks.insert(source.randint(0, len(chunks)), source.choice(_CHUNK_SIZES) + b"\r\nhello\r\n")
    elif odd == 1:
        chunks = [chunk.replace(b"\r\n", source.choice([b"\n", b"\r", b"; a=b\r\n"]), 1) for chunk in chunks]
    elif odd == 2:
        chunks = chunks[: len(chunks) // 2]  # no end
    last = (
        b""
        if odd == 2
        else source.choice([b"0\r\n\r\n", b"0\r\n\r\n", b"0\r\nx: a\r\n" * 200 + b"\r\n", b"00000\r\n\r\n"])
    )
    head = b"POST /v1/translate HTTP/1.1\r\nhost: localhost\r\n" + _JSON + b"transfer-encoding: chunked\r\n\r\n"
    return Drawn("chunks", [head, b"".join(chunks) + last], is_whole=odd == 3)


def _pipelines(source: random.Random) -> Drawn:
    requests = [_good(source) for _ in range(source.choice([2, 5, 100]))]
    if source.random() < 0.5:
        requests.insert(source.randrange(len(requests)), source.randbytes(30))
    return Drawn("pipelines", [b"".join(requests)], is_whole=False)


def _json_bodies(source: random.Random) -> Drawn:
    depth = source.choice([10, 101, 1_000, 90_000])
    field, value = source.choice(_FIELDS), source.choice(_VALUES)
    body = source.choice([
        f'{{"{field}": {value}}}',
        f'{{"contents": ["a"], "model": "en-de", "{field}": {value}}}',
        f'{{"contents": [{value}], "model": "en-de"}}',
        "[" * depth,
        "[" * depth + "]" * depth,
        '{"options":' * depth + "{}" + "}" * depth,
        '{"contents": ["' + "\\u0000" * depth + '"], "model": "en-de"}',
        '{"a": 1, "a": 2}',
        '{"contents": [' + '"",' * depth + '""]}',
        value,
        "{" + ",".join(f'"{number}": 0' for number in range(depth)) + "}",
    ]).encode()  # fmt: skip
    if source.random() < 0.3:
        at = source.randint(0, len(body))
        body = body[:at] + source.choice([*_NO_UTF8, b"\0", b"\\", b'"']) + body[at:]
    return Drawn("odd JSON", [_request(source.choice(_POSTED), body, _JSON)])


def _forms(source: random.Random) -> Drawn:
    fields = ["q=" + quote(text(source)), "source=en", "target=de", "text=a", "target_lang=DE"]
    fields += [source.choice(_ESCAPES) * source.choice([1, 3, 3_000]) for _ in range(source.randint(1, 4))]
    source.shuffle(fields)
    joined = source.choice("&&&;").join(fields).encode()
    if source.random() < 0.3:
        joined += source.choice(_NO_UTF8)
    path = source.choice(["/translate", "/detect", "/v2/translate", "/v2/usage"])
    if source.random() < 0.5:
        return Drawn("odd forms", [_request(path, joined, _FORM)])
    return Drawn("odd forms", [_request(path + "?" + joined.decode("latin-1"), b"", _JSON)])


def _multiparts(source: random.Random) -> Drawn:
    """Forms with files, of documents and of noise that is named like one; less than half are right but for the file."""
    fields = [_part("source", b"en"), _part("target", b"de"), _part("target_lang", b"DE")]
    kind, end = b"content-type: multipart/form-data; boundary=b", b"--b--\r\n"
    if source.random() < 0.4:
        parts = [*fields, _part("file", _document(source), "a" + source.choice(_SUFFIXES))]
        path = source.choice(["/translate_file", "/v2/document"])
        return Drawn("forms with files", [_request(path, b"".join(parts) + end, kind + b"\r\n")])
    parts = fields * source.randint(0, 2)
    for _ in range(source.choice([0, 1, 1, 2, 5, 3_000])):
        name = source.choice(["file", "file", "text", "q", "target", "", "a\0b", "ä" * 50])
        parts.append(_part(name, _document(source), source.choice([None, "a.txt", "../a.srt", "x" * 300, "", ".html"])))
    source.shuffle(parts)
    end = source.choice([end, end, end, b"", b"--b", b"--c--\r\n", b"--b--hello"])
    kind = source.choice([kind, kind, kind, kind[:-1], kind + b"b" * 500, kind[:-1] + b"c"])
    path = source.choice(["/translate_file", "/translate_file", "/v2/document", "/translate", "/v2/translate"])
    return Drawn("odd forms with files", [_request(path, b"".join(parts) + end, kind + b"\r\n")])


def _document(source: random.Random) -> bytes:
    spoken = text(source)
    return source.choice([
        spoken.encode(), f"<p>{spoken}</p>".encode(), f'msgid "{spoken}"\nmsgstr ""\n'.encode(), b"", *_NO_UTF8,
        f"1\n00:00:01,000 --> 00:00:02,000\n{spoken}\n".encode(), b"PK\x03\x04" + source.randbytes(300),
        b"<" * 20_000, b"<xliff><file>" * 200, source.randbytes(500),
    ])  # fmt: skip


def _part(name: str, content: bytes, file: str | None = None) -> bytes:
    disposition = f'form-data; name="{name}"' + ("" if file is None else f'; filename="{file}"')
    return f"--b\r\ncontent-disposition: {disposition}\r\n\r\n".encode() + content + b"\r\n"


def _large(source: random.Random) -> Drawn:
    size = source.choice([100_000, 1_000_000, 8_000_000, 9_000_000])
    return Drawn("large bodies", [_request(source.choice(_POSTED), source.choice([b"a", b" ", b"["]) * size, _JSON)])


def _upgrades(source: random.Random) -> Drawn:
    to = source.choice([b"h2c", b"websocket", b"TLS/1.0", b"a" * 500])
    upgrade = b"connection: upgrade\r\nupgrade: " + to + b"\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    path = source.choice(_POSTED)
    return Drawn("upgrades", [_request(path, _good_body(source, path), _JSON, upgrade) + source.randbytes(20)])


def _other_protocols(source: random.Random) -> Drawn:
    sent = source.choice([
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + source.randbytes(200),
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"\x00\x0e\x38" + source.randbytes(40),
        b"EHLO a\r\nMAIL FROM:<a@b>\r\n",
        source.randbytes(source.choice([1, 100, 5_000])),
    ])  # fmt: skip
    return Drawn("other protocols", [sent], is_whole=False)


def _odd_bytes(source: random.Random) -> Drawn:
    sent = bytearray(_good(source))
    for _ in range(source.randint(1, 5)):
        at = source.randrange(len(sent))
        sent[at : at + source.randint(0, 3)] = source.randbytes(source.randint(0, 3))
    return Drawn("odd bytes", [bytes(sent)], is_whole=False)


def _slow(source: random.Random) -> Drawn:
    sent = _good(source)
    ends = sorted(source.randrange(1, len(sent)) for _ in range(10))
    return Drawn("slow", [sent[a:b] for a, b in zip([0, *ends], [*ends, len(sent)], strict=True)])


def _cut(source: random.Random) -> Drawn:
    sent = _good(source)
    return Drawn("cut off", [sent[: source.randint(0, len(sent) - 1)]], is_whole=False)


_KINDS: Final[tuple[Callable[[random.Random], Drawn], ...]] = (
    _odd_texts, _methods, _methods, _request_lines, _header_floods, _odd_headers, _lengths, _chunks, _pipelines,
    _json_bodies, _json_bodies, _forms, _multiparts, _upgrades, _other_protocols, _odd_bytes, _odd_bytes, _slow, _cut,
)  # fmt: skip
_LARGE_SHARE: Final = 0.01
