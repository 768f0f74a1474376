"""docs/observability.md lists exactly the metrics and settings there are."""

import re
from pathlib import Path

import pytest

from service.settings import Settings
from service.telemetry.metrics import Metrics

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/observability.md").read_text(encoding="utf-8")
TABLE = PAGE.split("## Metrics")[1].split("\n## ")[0]
# Of each row: the name, "(histogram)" or nothing, the labels, the meaning.
ROWS = re.findall(r"^\| `(\w+)`(?: (\(histogram\)))? \| ([^|]*) \| (.*) \|$", TABLE, flags=re.MULTILINE)
SUFFIX = {"counter": "_total", "info": "_info"}


def test_every_row_is_read() -> None:
    assert len(ROWS) == sum(line.startswith("| `") for line in TABLE.splitlines())


def test_every_metric_is_listed_with_its_meaning() -> None:
    families = [family for family in Metrics().registry.collect() if family.name.startswith("dragoman_")]
    expected = {
        (
            family.name.removeprefix("dragoman_") + SUFFIX.get(family.type, ""),
            "(histogram)" if family.type == "histogram" else "",
            family.documentation,
        )
        for family in families
    }
    assert len(ROWS) == len(families)
    assert {(name, kind, meaning) for name, kind, _, meaning in ROWS} == expected


@pytest.mark.parametrize(("name", "listed"), [(name, listed) for name, _, listed, _ in ROWS])
def test_the_labels_of_a_metric_are_listed(name: str, listed: str) -> None:
    metrics = Metrics()
    metrics.describe_model("en-de", "int8", "cpu")
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
