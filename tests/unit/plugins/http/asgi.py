"""A call of an application, without a socket."""

import asyncio
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    json: Any


async def call(app: Any, method: str, url: str, content: Any = None, **headers: str) -> Answer:
    """Call an application with a body of JSON, or of bytes, from a client that stays."""
    given = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    parts = urlsplit(url)
    scope = {
        "type": "http",
        "method": method,
        "path": parts.path,
        "raw_path": parts.path.encode(),
        "query_string": parts.query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 40_000),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "http_version": "1.1",
    }
    body = b"" if content is None else content if isinstance(content, bytes) else json.dumps(content).encode()
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])
    sent: list[Any] = []

    async def receive() -> Any:
        for message in messages:
            return message
        return await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    started, *parts_of_body = sent
    answered = b"".join(part.get("body", b"") for part in parts_of_body)
    named = {name.decode(): value.decode() for name, value in started["headers"]}
    return Answer(started["status"], named, json.loads(answered))
