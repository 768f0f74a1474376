"""A translated document as an answer: to be saved, not to be shown."""

from typing import Final
from urllib.parse import quote

from starlette.responses import Response

# A page that somebody sent here is not to run as one of this server.
_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
}


def download(file_name: str, content: bytes) -> Response:
    """Make the answer.

    Args:
        file_name: as the client calls it.
        content: of the file.
    """
    name = quote(file_name, safe="")
    headers = _HEADERS | {"content-disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(content, headers=headers, media_type="application/octet-stream")
