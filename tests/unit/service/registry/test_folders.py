"""What lies in the folders at the start, with a plugin that follows them and without."""

from pathlib import Path

import pytest

from dragoman.errors import BundleError
from service import plugins
from tests.unit.service.registry.followed_models import FollowedModels


@pytest.fixture(params=[True, False], ids=["followed", "read once"])
async def models(
    request: pytest.FixtureRequest, tmp_path: Path, manifest, tokenizer, monkeypatch: pytest.MonkeyPatch
) -> FollowedModels:
    (tmp_path / "models").mkdir()
    if not request.param:
        monkeypatch.setattr(plugins, "load", lambda group: [])
    return FollowedModels(tmp_path / "models", manifest, tokenizer)


async def test_all_bundles_are_served_at_the_start(models: FollowedModels) -> None:
    models.write("a", "en-de")
    models.write("b/bundle", "de-en", "2")
    await models.start()
    assert models.versions() == {"en-de": "1", "de-en": "2"}
    assert models.errors == 0


async def test_at_the_start_one_bad_bundle_is_fatal(models: FollowedModels) -> None:
    models.write("a", "en-de")
    (models.write("b", "de-en") / "decoder.onnx").write_text("corrupt")
    with pytest.raises(BundleError, match=r"decoder\.onnx: sha256 is"):
        await models.start()


async def test_at_the_start_two_bundles_of_a_name_are_fatal(models: FollowedModels) -> None:
    models.write("a")
    models.write("b")
    with pytest.raises(BundleError, match="2 bundles are called 'en-de'"):
        await models.start()


async def test_at_the_start_an_empty_folder_is_fatal(models: FollowedModels) -> None:
    with pytest.raises(BundleError, match="there is no bundle"):
        await models.start()


async def test_a_start_that_is_told_to_stop_loads_nothing_more(models: FollowedModels) -> None:
    models.write("a")
    models.stop.set()
    await models.folders.start(models.stop)
    assert models.loads == []
