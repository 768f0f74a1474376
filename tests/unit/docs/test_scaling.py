"""docs/scaling.md says of the default model what the server estimates."""

import re
from pathlib import Path

import pytest

from dragoman.bundle import Bundle
from service.registry.model_cost import estimate
from service.settings import MEGABYTE, Settings
from tests.server_process import BUNDLE

PAGE = (Path(__file__).parents[3] / "docs" / "scaling.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not BUNDLE.is_dir(), reason="models/en-de/bundle is not there")
def test_the_memory_of_the_default_model() -> None:
    settings = Settings(threads=2)
    cost = estimate(Bundle.open(BUNDLE), settings)
    caches_mb = settings.encoder_cache_mb + settings.result_cache_mb
    loaded_mb, total_mb = round(cost.loaded_bytes / MEGABYTE), round(cost.total_bytes / MEGABYTE)
    work_mb = round(cost.later_bytes / MEGABYTE) - caches_mb
    [line] = re.findall(r"that is (.+?) MB of caches", PAGE.replace("\n", " "))
    assert re.findall(r"\d+", line) == [str(each) for each in (total_mb, loaded_mb, work_mb, caches_mb)]
    assert f"at most {110 + total_mb} MB" in PAGE
