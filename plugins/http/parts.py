"""The parts of a server that routes of plugins are made of."""

from typing import Final, NamedTuple

from plugins.http.calls import Calls
from plugins.http.methods import Methods
from service.handlers.gate import Gate
from service.handlers.translation import TranslationHandlers
from service.settings import Settings
from service.telemetry.metrics import Metrics

# The entry points that name functions from `HttpParts` to routes of Starlette.
ROUTES: Final = "dragoman.routes"


class HttpParts(NamedTuple):
    """The parts, which all routes share."""

    settings: Settings
    metrics: Metrics
    gate: Gate
    handlers: TranslationHandlers
    calls: Calls
    methods: Methods
