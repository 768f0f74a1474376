"""docs/reference/metrics.md lists exactly the metrics there are; docs/observability.md names settings that exist."""

import re
from pathlib import Path

import pytest

from docs.generators import metrics as metrics_page
from service.settings import Settings
from service.telemetry.metrics import Metrics

PAGE = (Path(__file__).parents[3] / "docs/observability.md").read_text(encoding="utf-8")
# Of each row: the name, the kind, the labels, the meaning.
ROWS = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| (.*) \|$", metrics_page.page(), flags=re.MULTILINE)
SUFFIX = {"counter": "_total", "info": "_info"}


def test_every_metric_is_listed_with_its_meaning() -> None:
    families = [family for family in Metrics().registry.collect() if family.name.startswith("dragoman_")]
    expected = {
        (
            family.name.removeprefix("dragoman_") + SUFFIX.get(family.type, ""),
            family.type,
            family.documentation,
        )
        for family in families
    }
    assert len(ROWS) == len(families)
    assert {(name, kind, meaning) for name, kind, _, meaning in ROWS} == expected


@pytest.mark.parametrize(("name", "listed"), [(name, listed) for name, _, listed, _ in ROWS])
def test_the_labels_of_a_metric_are_listed(name: str, listed: str) -> None:
    metrics = Metrics()
    metrics.model_info.labels("en-de").info({"precision": "int8", "device": "cpu"})
    labels = dict.fromkeys(re.findall(r"`(\w+)`", listed), "x")
    for label in ("precision", "device") if name == "model_info" else ():
        del labels[label]  # which an Info has besides
    if labels:
        getattr(metrics, name).labels(**labels)  # raises ValueError where they are others
    else:
        [family] = getattr(metrics, name).collect()
        assert family.samples  # with labels there would be none yet


def test_its_settings_exist() -> None:
    flags = set(re.findall(r"--([a-z]+(?:-[a-z]+)+)", PAGE))
    assert flags
    assert {flag.replace("-", "_") for flag in flags} <= set(Settings.model_fields)
