"""A guard against requests that browsers send for pages of other sites, for a server without API keys.

A page cannot read answers of another origin, but its forms can send requests to any address that its browser reaches.
And if the page's own host name gets an address of this machine (DNS rebinding), this server counts as the page's own.
"""

import ipaddress
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from plugins.http import errors
from plugins.http.forwarded import TrustedProxies
from plugins.http.own import HEALTH
from service.wire import SERVICE

_LIBRETRANSLATE: Final = re.compile("/(?:translate|translate_file|download_file/.*|detect|languages|frontend/settings)")
_DEEPL: Final = "/v2/"
_CONNECT: Final = f"/{SERVICE}/"
_HOST: Final = re.compile(r"(?:\[([^\]]*)\]|([^:]*))(?::\d*)?")


class BrowserGuard:
    """An ASGI application that refuses requests that only pages of other sites send.

    Args:
        origins: the origins of pages that may call; "*": all.
        proxies: trusted proxies; they may forward host names that are not this machine's.
        only_loopback: whether only this machine can connect.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str], proxies: TrustedProxies, *, only_loopback: bool) -> None:
        self._app = app
        self._origins = origins
        self._proxies = proxies
        self._only_loopback = only_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP request."""
        problem = None if scope["path"] == HEALTH else self._problem(Request(scope))  # open to any balancer
        answer = self._app if problem is None else _refusal(scope["path"], problem)
        await answer(scope, receive, send)

    def _problem(self, request: Request) -> str | None:
        if self._is_of_another_site(request):
            return "a page of another site may not call this server, which asks for no keys; see --http-origins"
        if self._has_a_strange_name(request):
            host = request.headers["host"][:100]
            return f"host: must be localhost or an address of loopback, on which this server listens, is {host!r}"
        return None

    def _is_of_another_site(self, request: Request) -> bool:
        if request.headers.get("sec-fetch-site") != "cross-site":
            return False
        follows_link = request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate"
        return not follows_link and not {"*", request.headers.get("origin")} & set(self._origins)

    def _has_a_strange_name(self, request: Request) -> bool:
        host = request.headers.get("host")
        if not self._only_loopback or host is None or request.client is None or request.client.host in self._proxies:
            return False
        match = _HOST.fullmatch(host)
        return match is None or not is_loopback(match[1] or match[2])


def _refusal(path: str, message: str) -> Response:
    """Make the answer, as the protocol of the path writes an error."""
    if _LIBRETRANSLATE.fullmatch(path):
        return errors.json_response({"error": message}, 403)
    if path.startswith(_DEEPL):
        return errors.json_response({"message": message}, 403)
    if path.startswith(_CONNECT):
        return errors.json_response({"code": "permission_denied", "message": message}, 403)
    return errors.plain_answer(403, message)


@lru_cache(maxsize=64)  # called at every HTTP request
def is_loopback(host: str) -> bool:
    """Tell whether a host name or numeric address means the machine itself."""
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
