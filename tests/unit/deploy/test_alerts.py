"""The alert rules: each has a test and a page, and names only what exists."""

import re
import subprocess
from pathlib import Path

import pytest

from service.telemetry.metrics import Metrics
from tests import debian
from tests.promtool import program

ROOT = Path(__file__).resolve().parents[3]
PROMETHEUS = ROOT / "deploy/prometheus"
RULES = (PROMETHEUS / "alerts.yml").read_text()
COMPOSE = (ROOT / "docker-compose.yml").read_text()
TESTS = (PROMETHEUS / "alerts_test.yml").read_text()
PAGES = {page.stem: page.read_text() for page in (ROOT / "docs/runbooks").glob("*.md")}
ALERTS = re.findall(r"^      - alert: (\w+)$", RULES, re.MULTILINE)
SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "info": ["_info"], "gauge": [""]}


@pytest.fixture(scope="module")
def promtool() -> str:
    try:
        return program()
    except debian.NoPackagesError as error:
        pytest.skip(f"no promtool here: {error}")


@pytest.mark.parametrize("words", [("check", "config", "prometheus.yml"), ("test", "rules", "alerts_test.yml")])
def test_promtool_agrees(promtool: str, words: tuple[str, ...]) -> None:
    done = subprocess.run([promtool, *words], cwd=PROMETHEUS, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_loads_the_rules() -> None:
    assert "rule_files: [alerts.yml]" in (PROMETHEUS / "prometheus.yml").read_text()


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    assert set(ALERTS) == set(PAGES)


def test_every_alert_names_its_page() -> None:
    """By a URL that opens: Prometheus itself serves the pages, see docker-compose.yml."""
    expected = [f'"{{{{ $externalURL }}}}/user/{alert}.md"' for alert in ALERTS]
    assert re.findall(r"runbook_url: (.+)", RULES) == expected


def test_prometheus_serves_the_pages_under_the_url_that_it_names() -> None:
    prometheus = COMPOSE.split("\n  prometheus:\n")[1].split("\n  grafana:\n")[0]
    assert "--web.user-assets=/runbooks" in prometheus
    assert "./docs/runbooks:/runbooks:ro" in prometheus
    assert "--web.external-url=${PROMETHEUS_URL:-http://127.0.0.1:${PROMETHEUS_PORT:-9090}}" in prometheus


@pytest.mark.parametrize("alert", sorted(PAGES))
def test_a_page_says_what_it_means_and_what_to_do(alert: str) -> None:
    headings = re.findall(r"^#+ (.+)$", PAGES[alert], re.MULTILINE)
    assert headings == [alert, "What to look at", "What to do"]
    links = re.findall(r"\]\(([\w.]+)\)", PAGES[alert])
    assert [link for link in links if link.removesuffix(".md") not in PAGES] == []


@pytest.mark.parametrize("alert", sorted(PAGES))
def test_an_alert_is_tested_where_it_fires_and_where_it_does_not(alert: str) -> None:
    outcomes = re.findall(rf"alertname: {alert}\n +exp_alerts:( \[\])?", TESTS)
    assert set(outcomes) == {"", " []"}


def test_every_metric_exists() -> None:
    families = Metrics().registry.collect()
    exported = {family.name + suffix for family in families for suffix in SUFFIXES[family.type]}
    rules = re.sub(r"dragoman:\w+:\w+", "", RULES)
    named = set(re.findall(r"\b((?:dragoman|process)_\w+)", rules))
    assert named
    assert named - exported == set()
