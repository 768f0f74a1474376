"""Where models lie, without and with a plugin that knows more names than those of folders."""

from pathlib import Path

import pytest

from service import model_locations, plugins
from service.model_locations import ModelLocations
from service.settings import DEFAULT_MODELS, Settings


@pytest.mark.parametrize("bring_in", [False, True])
def test_without_a_plugin_names_are_folders(bring_in: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "load", lambda group: [])
    found = model_locations.find(Settings(models="a/b,firefox:en-de"), bring_in=bring_in)
    assert found == ModelLocations([Path("a/b"), Path("firefox:en-de")])


def test_a_model_that_comes_with_the_server_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "load", lambda group: [])
    monkeypatch.chdir(tmp_path)
    names = "en-de,./de-en,phrases.tsv,en-fr,../models,firefox:fr-en,de-en"
    own, *others = model_locations.find(Settings(models=names), bring_in=False).folders
    assert own == DEFAULT_MODELS / "en-de"
    assert others == [Path(name) for name in names.split(",")[1:]]  # behind a pair of Firefox de-en is one, too
    (tmp_path / "en-de").mkdir()
    assert model_locations.find(Settings(models="en-de"), bring_in=False).folders == [Path("en-de")]


def test_a_plugin_is_told_whether_it_may_import(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, asked = Settings(models="a"), []

    def find_models(given: Settings, *, bring_in: bool) -> ModelLocations:
        asked.append((given, bring_in))
        return ModelLocations([Path("b")], "en", on_demand=True)

    monkeypatch.setattr(plugins, "load", lambda group: [find_models] if group == plugins.MODELS else [])
    for bring_in in (False, True):
        assert model_locations.find(settings, bring_in=bring_in) == ModelLocations([Path("b")], "en", on_demand=True)
    assert asked == [(settings, False), (settings, True)]
