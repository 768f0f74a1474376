"""Where models lie, without and with a plugin that knows more names than those of folders."""

from pathlib import Path

import pytest

from service import model_locations, plugins
from service.model_locations import ModelLocations
from service.settings import Settings


@pytest.mark.parametrize("find", [model_locations.find, model_locations.bring])
def test_without_a_plugin_names_are_folders(find, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "load", lambda group: [])
    assert find(Settings(models="a/b,firefox:en-de")) == ModelLocations([Path("a/b"), Path("firefox:en-de")])


def test_a_plugin_is_told_whether_it_may_import(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, asked = Settings(models="a"), []

    def find_models(given: Settings, *, bring_in: bool) -> ModelLocations:
        asked.append((given, bring_in))
        return ModelLocations([Path("b")], "en", on_demand=True)

    monkeypatch.setattr(plugins, "load", lambda group: [find_models] if group == plugins.MODELS else [])
    assert (
        model_locations.find(settings)
        == model_locations.bring(settings)
        == ModelLocations([Path("b")], "en", on_demand=True)
    )
    assert asked == [(settings, False), (settings, True)]
