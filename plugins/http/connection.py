"""One HTTP/1.1 connection: uvicorn's protocol, with limits on overdue requests, header size and unread answers.

uvicorn itself waits without limit for the rest of a request, accepts headers and trailers of any size, takes trailers
for headers, waits without limit for a client that does not read its answer, and sends chunks to clients of HTTP/1.0
(observed in 0.54).
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, cast

import httptools
from starlette.types import Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from plugins.http.errors import refusal
from plugins.http.joined_writes import JoinedWrites
from service.security.connection_limits import MAX_HEAD_BYTES

# Ten round trips of a slow line: for the headers of a request, and for the rest of a request that was answered early.
HEAD_TIMEOUT_S: Final = 10.0
# 8 MiB over a line of 1 Mbit/s, as for messages: the longest time that a part of an answer may stay unread.
UNREAD_TIMEOUT_S: Final = 60.0


class Connection(HttpToolsProtocol):
    """One connection, with one request after another.

    Args:
        max_age_s: the age after which the client should open a new connection; 0: no limit.
        is_last: tells whether the next request is the last.
    """

    def __init__(
        self,
        config: Config,
        state: ServerState,
        max_age_s: float,
        *,
        on_lost: Callable[[], None],
        is_last: Callable[[], bool],
    ) -> None:
        super().__init__(config, state, {}, asyncio.get_running_loop())
        self._began_s = time.monotonic()
        self._max_age_s = max_age_s
        self._on_lost = on_lost
        self._is_last = is_last
        self._owes_since_s: float | None = self._began_s  # missing: headers, or the rest of a request answered early
        self._unread_since_s: float | None = None
        self._head_bytes = 0  # received outside of bodies; less is counted for the framing of chunks
        self._complete = True  # whether the latest request has arrived completely, with its body
        self._plain_bytes = 0  # remaining bytes of a body that the parser does not read
        self._deaf = False

    @property
    def has_begun(self) -> bool:
        """Whether the connection was opened: then :meth:`connection_lost` is called at its end."""
        return self.transport is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Open the connection."""
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport)))

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection."""
        super().connection_lost(exc)
        self._on_lost()

    def look(self, now_s: float) -> None:
        """Abort the connection if the client has let a request or an unread answer wait for too long."""
        if not self.transport.is_closing() and not self.transport.get_write_buffer_size():
            self._unread_since_s = None
        elif self._unread_since_s is None:
            self._unread_since_s = now_s
        owes = self._owes_since_s is not None and now_s - self._owes_since_s > HEAD_TIMEOUT_S
        if owes or (self._unread_since_s is not None and now_s - self._unread_since_s > UNREAD_TIMEOUT_S):
            self.transport.abort()

    def leave(self) -> None:
        """Mark the answer in progress as the last of this connection."""
        if self.cycle is not None:
            self.cycle.keep_alive = False

    def data_received(self, data: bytes) -> None:
        """Parse incoming data; ignore it after a refused request, or one that came too early."""
        if self._deaf:
            return
        self._unset_keepalive_if_required()
        if self._plain_bytes:
            self._take_plain(data)
            return
        self._head_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._take_plain(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse(400, "the request is not valid HTTP/1.1")
        if self._head_bytes > MAX_HEAD_BYTES:
            what = "headers of a request, and what its chunks have around the body,"
            self._refuse(431, f"the {what} must be at most {MAX_HEAD_BYTES} bytes")

    def on_message_begin(self) -> None:
        """Begin a request.

        A request that arrives before the last answer is not read: the connection ends after that answer, as HTTP
        allows.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False
            self._deaf = True
            raise httptools.HttpParserError("a request before the answer to the last")
        super().on_message_begin()
        self._complete = False
        self._owes_since_s = time.monotonic()

    def on_headers_complete(self) -> None:
        """Begin the call, unless the headers are refused."""
        self._check_head()
        self._owes_since_s = None
        if self.parser.get_http_version() == "1.0":
            self.app = self._without_chunks
        super().on_headers_complete()
        is_old = self._max_age_s and time.monotonic() - self._began_s > self._max_age_s
        if is_old or self._is_last():
            self.cycle.keep_alive = False
        if self.parser.should_upgrade():
            self._stay()
        self.headers = []  # trailers go here: they are no headers of the request

    def on_body(self, body: bytes) -> None:
        """Take a part of the body; as many bytes of framing do not count."""
        self._head_bytes = max(0, self._head_bytes - 2 * len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request has arrived completely."""
        if self._plain_bytes:
            return
        self._complete = True
        self._head_bytes = 0
        self._owes_since_s = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Continue with the next request after the rest of this one, which is read and dropped, has arrived."""
        if not self._complete:
            self._owes_since_s = time.monotonic()
        super().on_response_complete()

    def _check_head(self) -> None:
        """Refuse headers that are too large, lack a single host as HTTP/1.1 requires, or announce an encoded body.

        Raises:
            HttpParserError: the headers were refused.
        """
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        hosts = sum(name == b"host" for name, _ in self.headers)
        transfer = {value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"}
        if size > MAX_HEAD_BYTES:
            self._refuse(431, f"the headers of a request must be at most {MAX_HEAD_BYTES} bytes, are {size}")
        elif hosts > 1 or not (hosts or self.parser.get_http_version() == "1.0"):
            self._refuse(400, f"a request must have one header that names the host, has {hosts}")
        elif transfer - {b"chunked"}:
            self._refuse(501, "transfer-encoding: a body may be chunked, and nothing else")
        if self._deaf:
            raise httptools.HttpParserError("refused")

    async def _without_chunks(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application for a client of HTTP/1.0: the end of the connection ends a body without a length."""
        cycle = self.cycle
        cycle.chunked_encoding = False

        async def send_plain(message: Message) -> None:
            cycle.expected_content_length = len(message.get("body", b""))  # uvicorn wants the length that remains
            await send(message)

        await self.config.loaded_app(scope, receive, send_plain)

    def _stay(self) -> None:
        """Answer an upgrade request, as sent by Java's own client, like a normal request.

        The parser reads neither the body nor any further request.
        """
        self.cycle.keep_alive = False
        fields = dict(self.headers)
        if b"transfer-encoding" in fields:
            self._refuse(400, "a request to upgrade must say the length of its body")
        else:
            self._plain_bytes = int(fields.get(b"content-length", b"0"))

    def _take_plain(self, data: bytes) -> None:
        """Process a part of a body that the parser does not read."""
        if not self._plain_bytes:
            return
        body = data[: self._plain_bytes]
        self._plain_bytes -= len(body)
        self.on_body(body)
        if not self._plain_bytes:
            self.on_message_complete()

    def _refuse(self, status: int, message: str) -> None:
        """Send an error in place of the application, only once, and end the connection."""
        if self._deaf:
            return
        self._deaf = True
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.keep_alive = False
            if self._complete:  # the error is after a complete request, which is answered first
                return
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.close()
                return
        self.transport.write(refusal(status, message))
        self.transport.close()
