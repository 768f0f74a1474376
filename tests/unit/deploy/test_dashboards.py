"""The dashboard, Prometheus and compose name only what exists."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from service.metrics import Metrics

ROOT = Path(__file__).resolve().parents[3]
DASHBOARDS = sorted((ROOT / "deploy/grafana/dashboards").glob("*.json"))
SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "info": ["_info"], "gauge": [""]}
# Prometheus makes `up` itself; the balancer's are checked against the running balancer by `make test-compose`.
OF_OTHERS = re.compile(r"up|haproxy_\w+")


def panels(dashboard: Path) -> list[dict[str, Any]]:
    return json.loads(dashboard.read_text())["panels"]


def queries(dashboard: Path) -> list[str]:
    return [target["expr"] for panel in panels(dashboard) for target in panel.get("targets", [])]


def exported() -> set[str]:
    families = Metrics().registry.collect()
    return {family.name + suffix for family in families for suffix in SUFFIXES[family.type]}


def test_there_is_a_dashboard() -> None:
    assert DASHBOARDS


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.name)
class TestDashboard:
    def test_every_metric_exists(self, dashboard: Path) -> None:
        named = {name for query in queries(dashboard) for name in re.findall(r"\b(?:\w+_\w+|up)\b", query)}
        functions = {"histogram_quantile", "group_left", "__rate_interval"}
        unknown = {name for name in named - functions - exported() if not OF_OTHERS.fullmatch(name)}
        assert not unknown

    def test_every_metric_of_the_server_is_shown(self, dashboard: Path) -> None:
        text = " ".join(queries(dashboard))
        families = [family.name for family in Metrics().registry.collect() if family.name.startswith("dragoman_")]
        assert [name for name in families if name not in text] == []

    def test_panels_have_ids_of_their_own_and_do_not_overlap(self, dashboard: Path) -> None:
        found = panels(dashboard)
        assert len({panel["id"] for panel in found}) == len(found)
        for one, other in combinations((panel["gridPos"] for panel in found), 2):
            apart_in_x = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
            apart_in_y = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
            assert apart_in_x or apart_in_y, (one, other)

    def test_every_panel_asks_the_provisioned_source(self, dashboard: Path) -> None:
        provisioned = (ROOT / "deploy/grafana/provisioning/datasources/prometheus.yml").read_text()
        [uid] = re.findall(r"uid: (\w+)", provisioned)
        asked = [target["datasource"]["uid"] for panel in panels(dashboard) for target in panel.get("targets", [])]
        assert set(asked) == {uid}


def test_prometheus_and_the_balancer_look_for_services_of_the_compose_file() -> None:
    compose = (ROOT / "docker-compose.yml").read_text().split("\nservices:\n")[1]
    services = set(re.findall(r"^  ([\w-]+):$", compose, re.MULTILINE))
    [scraped] = re.findall(r"names: \[(.*)\]", (ROOT / "deploy/prometheus/prometheus.yml").read_text())
    balanced = re.findall(r"server-template \w+ \d+ ([\w-]+):50051", (ROOT / "deploy/balancer/haproxy.cfg").read_text())
    assert set(scraped.split(", ")) == set(balanced)
    assert set(balanced) <= services
