"""Calls of the HTTP port of a server."""

import http.client
import json
from typing import Any, NamedTuple

from tests.server_process import PATIENCE_S, ServerProcess


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        return self.json["error"]["details"][0]["reason"]


def call(server: ServerProcess, method: str, path: str, content: Any = None, **headers: str) -> Answer:
    """Make one call on a connection of its own."""
    connection = http.client.HTTPConnection(server.http_address, timeout=PATIENCE_S)
    body = content if isinstance(content, bytes | None) else json.dumps(content).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, {"content-type": "application/json"} | names)
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())
    finally:
        connection.close()
