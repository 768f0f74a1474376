"""The parts of a server that routes of plugins are made of."""

from typing import NamedTuple

from service.handlers.gate import Gate
from service.handlers.translation import TranslationHandlers
from service.http.calls import Calls
from service.http.methods import Methods
from service.settings import Settings
from service.telemetry.metrics import Metrics


class HttpParts(NamedTuple):
    """The parts, which all routes share."""

    settings: Settings
    metrics: Metrics
    gate: Gate
    handlers: TranslationHandlers
    calls: Calls
    methods: Methods
