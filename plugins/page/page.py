"""The web page to translate text and the guide for programs: their files, and their security headers."""

import hashlib
import html
from pathlib import Path
from string import Template
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dragoman.documents.formats import MAX_BYTES, installed_suffixes

FOLDER: Final = Path(__file__).parent / "static"
_KINDS: Final = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
FILES: Final = {file.name: _KINDS[file.suffix] for file in sorted(FOLDER.iterdir()) if file.suffix in _KINDS}
PAGES: Final = {"/": "index.html", "/docs": "guide.html"}
_HTML: Final = "text/html; charset=utf-8"
_FORM_BYTES: Final = 4_096  # for the parts of the form around the file
# The page may load from and call its own server only, in no frame, and may not create elements from text.
_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)


def routes(max_text_bytes: int, max_request_bytes: int, pivot_language: str) -> list[BaseRoute]:
    """Make the routes; the files are read once, now.

    Args:
        max_text_bytes: the limit of one text.
        max_request_bytes: the limit of a request with a file.
        pivot_language: the intermediate language if no model serves both languages; "": none.
    """
    values = {
        "max_text_bytes": max_text_bytes,
        "max_file_bytes": max(0, min(max_request_bytes - _FORM_BYTES, MAX_BYTES)),
        "pivot_language": html.escape(pivot_language),
        "suffixes": ", ".join(installed_suffixes()),
    }
    pages = {
        path: Template((FOLDER / name).read_text(encoding="utf-8")).substitute(values) for path, name in PAGES.items()
    }
    files = {name: (FOLDER / name).read_bytes() for name in FILES}
    return [
        *(_route(path, page.encode(), _HTML) for path, page in pages.items()),
        *(_route(f"/page/{name}", content, FILES[name]) for name, content in files.items()),
    ]


def _route(path: str, content: bytes, kind: str) -> Route:
    etag = f'"{hashlib.sha256(content).hexdigest()}"'
    headers = {
        # The browser asks each time for a newer version, so that all files are of one version.
        "cache-control": "no-cache",
        "etag": etag,
        "content-security-policy": _POLICY,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }

    async def endpoint(request: Request) -> Response:
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers | {"content-type": kind})

    return Route(path, endpoint)
