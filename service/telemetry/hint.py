"""A hint for people at a terminal: the first command to try."""

import sys
from pathlib import Path

import structlog

from dragoman.address import Address
from service.settings import Settings

_log = structlog.get_logger()


def suggest(settings: Settings) -> None:
    """Tell people at a terminal a first command to try, where it needs no certificates or keys."""
    needs_more = settings.tls_certificate or settings.api_keys or not Address.parse(settings.address).port
    if sys.stderr.isatty() and settings.log_format != "json" and not needs_more:
        program = sys.argv[0] if Path(sys.argv[0]).name == "dragoman" else "dragoman"
        _log.info(f'try: {program} translate --address {settings.address} "Good morning."')
