"""Handlers that ask for the key of the one who calls."""

from plugins.access.api_keys import KeyStore, entry_of
from plugins.access.callers import KeyHolders
from service.handlers.translation import TranslationHandlers
from service.settings import Settings
from service.telemetry.access_log import AccessLog
from tests.unit.service.played_engine import PlayedEngine

KEY = "dragoman_one"
NAME = "alice"


def keyed(played: PlayedEngine, **limits: object) -> TranslationHandlers:
    """Makes them, with the gate and the records of others; their one key may have limits."""
    store, access_log = KeyStore({NAME: entry_of(KEY, **limits)}), AccessLog(played.metrics, tracer=played.records)
    return TranslationHandlers(
        played.gate, Settings(), played.metrics, KeyHolders(played.metrics, lambda: store), access_log
    )
