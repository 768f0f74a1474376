"""The web page to translate text, and the guide for programs."""

from starlette.routing import BaseRoute

from plugins.http.parts import HttpParts
from plugins.page import page


def routes(parts: HttpParts) -> list[BaseRoute]:
    """Make the routes."""
    settings = parts.handlers.settings
    return page.routes(settings.max_text_bytes, settings.max_request_bytes, settings.pivot_language)
