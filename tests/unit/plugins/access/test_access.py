"""The files that the settings name."""

from pathlib import Path

import pytest

from plugins.access.access import access
from service.settings import Settings, SettingsError
from service.telemetry.metrics import Metrics


def test_keys_that_cannot_be_read_are_named_by_their_flag(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    with pytest.raises(SettingsError, match=f"^--api-keys: {path}: No such file or directory$"):
        access(Settings(api_keys=str(path)), Metrics())
    path.write_text("")
    with pytest.raises(SettingsError, match=f"^--api-keys: {path}: there is no key in it$"):
        access(Settings(api_keys=str(path)), Metrics())
