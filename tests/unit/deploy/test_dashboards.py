"""The dashboard, Prometheus and compose name only what exists."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from service.telemetry.metrics import Metrics

ROOT = Path(__file__).resolve().parents[3]
DASHBOARDS = sorted((ROOT / "deploy/grafana/dashboards").glob("*.json"))
SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "info": ["_info"], "gauge": [""]}
# Prometheus makes `up` itself; the balancer's are checked against the running balancer by `make test-compose`.
OF_OTHERS = re.compile(r"up|haproxy_\w+")


def panels(dashboard: Path) -> list[dict[str, Any]]:
    return json.loads(dashboard.read_text())["panels"]


def shown(dashboard: Path) -> list[dict[str, Any]]:
    """All panels but the titles of rows."""
    return [panel for panel in panels(dashboard) if panel["type"] != "row"]


def queries(dashboard: Path) -> list[str]:
    return [target["expr"] for panel in panels(dashboard) for target in panel.get("targets", [])]


def exported() -> set[str]:
    families = Metrics().registry.collect()
    return {family.name + suffix for family in families for suffix in SUFFIXES[family.type]}


def metrics_of_a_model() -> Metrics:
    """With the metrics of a model in it: without one they have no samples."""
    metrics = Metrics()
    metrics.of("en-de")
    metrics.model_info.labels("en-de").info({"precision": "int8", "device": "cpu"})
    metrics.model_reloads_total.labels("en-de", "loaded")
    metrics.model_loads_total.labels("en-de", "loaded")
    metrics.model_evictions_total.labels("en-de")
    metrics.tell_memory({"en-de": 1})
    return metrics


def test_there_is_a_dashboard() -> None:
    assert DASHBOARDS


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.name)
class TestDashboard:
    def test_every_metric_exists(self, dashboard: Path) -> None:
        unquoted = [re.sub(r'"[^"]*"', "", query) for query in queries(dashboard)]
        named = {name for query in unquoted for name in re.findall(r"\b(?:\w+_\w+|up)\b", query)}
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

    def test_it_can_be_imported_anywhere(self, dashboard: Path) -> None:
        """No data source, job, replica or model is written into it: each is a variable."""
        known = json.loads(dashboard.read_text())
        variables = {variable["name"]: variable for variable in known["templating"]["list"]}
        assert list(variables) == ["datasource", "job", "instance", "model", "runbooks"]
        assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
        asked = [target["datasource"] for panel in shown(dashboard) for target in panel["targets"]]
        asked += [variable["datasource"] for variable in variables.values() if variable["type"] == "query"]
        assert {source["uid"] for source in asked} == {"${datasource}"}
        text = dashboard.read_text()
        used = set(re.findall(r"\$\{?(\w+)", text)) - {"__rate_interval", "__all"}
        assert used == variables.keys()
        assert known["editable"]

    def test_every_query_asks_for_the_chosen_job_replicas_and_models(self, dashboard: Path) -> None:
        of_models = {
            sample.name
            for family in metrics_of_a_model().registry.collect()
            for sample in family.samples
            if "model" in sample.labels
        }
        for query in queries(dashboard):
            for name, selector in re.findall(r"\b(dragoman_\w+|process_\w+|up)\b(\{[^}]*\})?", query):
                assert selector.startswith('{job="$job", instance=~"$instance"'), query
                assert ('model=~"$model"' in selector) == (name in of_models), query

    def test_mistakes_of_callers_are_no_errors_of_the_server(self, dashboard: Path) -> None:
        [codes] = set(re.findall(r'code=~"([A-Z_|]+)"', (ROOT / "deploy/prometheus/alerts.yml").read_text()))
        by_title = {panel["title"]: panel["targets"][0]["expr"] for panel in shown(dashboard)}
        for title in ("Failed calls", "Failed calls by code"):
            assert f'code=~"{codes}"' in by_title[title]
        assert f'code!="OK", code!~"{codes}"' in by_title["Mistakes of callers by code"]
        others = [query for query in queries(dashboard) if "code!" in query]
        assert others == [by_title["Mistakes of callers by code"]]

    def test_links_lead_to_pages(self, dashboard: Path) -> None:
        links = [link["url"] for panel in shown(dashboard) for link in panel.get("links", [])]
        assert len(links) >= 10
        headings = re.findall(r"^## (\w+)$", (ROOT / "docs/runbooks.md").read_text(), re.MULTILINE)
        assert set(links) <= {f"${{runbooks}}#{heading.lower()}" for heading in headings}
        assert [link["url"] for link in json.loads(dashboard.read_text())["links"]] == ["${runbooks}"]

    def test_panels_say_what_runbooks_look_for(self, dashboard: Path) -> None:
        by_title = {panel["title"]: panel["targets"][0]["expr"] for panel in shown(dashboard)}
        titles = re.findall(r'^- "?([^":]+).*on which replicas', (ROOT / "docs/runbooks.md").read_text(), re.MULTILINE)
        assert titles
        assert [title for title in titles if "by (instance" not in by_title[title]] == []

    def test_panels_of_alerts_show_their_limits(self, dashboard: Path) -> None:
        for panel in shown(dashboard):
            assert panel["fieldConfig"]["defaults"]["unit"]
            if (
                panel.get("links")
                and panel["type"] == "timeseries"
                and "thresholds" in panel["fieldConfig"]["defaults"]
            ):
                assert panel["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"] == {"mode": "dashed"}
        limits = {
            panel["title"]: panel["fieldConfig"]["defaults"]["thresholds"]["steps"][1]["value"]
            for panel in shown(dashboard)
            if "thresholds" in panel["fieldConfig"]["defaults"]
        }
        rules = (ROOT / "deploy/prometheus/alerts.yml").read_text()
        assert limits["TranslateText"] == limits["Latency p95"] == 1
        assert limits["Memory"] == round(0.9 * 2**31)
        assert "dragoman_estimated_delay_seconds > 10" in rules
        assert limits["Estimated delay"] == 10
        assert limits["Failed calls"] == 0.005

    def test_there_is_a_heatmap_of_latency(self, dashboard: Path) -> None:
        [heatmap] = [panel for panel in shown(dashboard) if panel["type"] == "heatmap"]
        [target] = heatmap["targets"]
        assert (target["format"], target["legendFormat"]) == ("heatmap", "{{le}}")
        assert "sum by (le)" in target["expr"]


def test_prometheus_and_the_balancer_look_for_services_of_the_compose_file() -> None:
    compose = (ROOT / "docker-compose.yml").read_text().split("\nservices:\n")[1]
    services = set(re.findall(r"^  ([\w-]+):$", compose, re.MULTILINE))
    [scraped] = re.findall(r"names: \[(.*)\]", (ROOT / "deploy/prometheus/prometheus.yml").read_text())
    balanced = re.findall(r"server-template \w+ \d+ ([\w-]+):50051", (ROOT / "deploy/balancer/haproxy.cfg").read_text())
    assert set(scraped.split(", ")) == set(balanced)
    assert set(balanced) <= services
