"""Where models lie, without and with a plugin that knows more names than those of folders."""

from pathlib import Path

import pytest

from service import plugins, shelf
from service.settings import Settings
from service.shelf import Shelf


@pytest.mark.parametrize("find", [shelf.find, shelf.bring])
def test_without_a_plugin_names_are_folders(find, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "load", lambda group: [])
    assert find(Settings(models="a/b,firefox:en-de")) == Shelf([Path("a/b"), Path("firefox:en-de")])


def test_a_plugin_is_told_whether_it_may_import(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, asked = Settings(models="a"), []

    def find_models(given: Settings, *, bring_in: bool) -> Shelf:
        asked.append((given, bring_in))
        return Shelf([Path("b")], "en", on_demand=True)

    monkeypatch.setattr(plugins, "load", lambda group: [find_models] if group == plugins.MODELS else [])
    assert shelf.find(settings) == shelf.bring(settings) == Shelf([Path("b")], "en", on_demand=True)
    assert asked == [(settings, False), (settings, True)]
