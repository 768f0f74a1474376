"""The answer with a translated document: browsers save it and do not show it."""

from typing import Final
from urllib.parse import quote

from starlette.responses import Response

# An uploaded page must not run scripts as a page of this server.
_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
}


def download(file_name: str, content: bytes) -> Response:
    """Make the answer.

    Args:
        file_name: the client's name of the file.
    """
    name = quote(file_name, safe="")
    headers = _HEADERS | {"content-disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(content, headers=headers, media_type="application/octet-stream")
