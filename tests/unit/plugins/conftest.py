"""The fixtures of `tests/unit/service/conftest.py` that tests of plugins use, too."""

from tests.unit.service.conftest import closed_played, manifest, played, server_settings, tokenizer

__all__ = ["closed_played", "manifest", "played", "server_settings", "tokenizer"]
