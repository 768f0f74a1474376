"""docs/observability.md lists exactly the metrics and settings there are."""

import re
from pathlib import Path

from service.settings import Settings
from service.telemetry.metrics import Metrics

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/observability.md").read_text(encoding="utf-8")
SUFFIX = {"counter": "_total", "info": "_info"}


def test_every_metric_is_listed_with_its_labels_and_meaning() -> None:
    metrics = [metric for metric in vars(Metrics()).values() if hasattr(metric, "_labelnames")]
    expected = []
    for metric in metrics:
        name = metric._name.removeprefix("dragoman_") + SUFFIX.get(metric._type, "")
        kind = " (histogram)" if metric._type == "histogram" else ""
        labels = [*metric._labelnames, *(("precision", "device") if metric._type == "info" else ())]
        listed = ", ".join(f"`{label}`" for label in labels)
        expected.append(f"| `{name}`{kind} | {listed} | {metric._documentation} |")
    table = PAGE.split("## Metrics")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted(expected)


def test_its_settings_exist() -> None:
    flags = set(re.findall(r"--([a-z]+(?:-[a-z]+)+)", PAGE))
    assert flags
    assert {flag.replace("-", "_") for flag in flags} <= set(Settings.model_fields)
