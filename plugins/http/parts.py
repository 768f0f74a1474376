"""The parts of a server from which plugins make routes."""

from typing import Final, NamedTuple

from plugins.http.calls import Calls
from plugins.http.methods import Methods
from service.handlers.translation import TranslationHandlers

# The group of entry points for functions that make Starlette routes from `HttpParts`.
ROUTES: Final = "dragoman.routes"


class HttpParts(NamedTuple):
    """The parts, shared by all routes."""

    handlers: TranslationHandlers
    calls: Calls
    methods: Methods
