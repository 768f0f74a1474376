"""The alert rules: each has a test and a section of the runbooks, and names only what exists."""

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
TEST_FILES = ("alerts_test.yml", "alerts_hours_test.yml")
TESTS = "".join((PROMETHEUS / name).read_text() for name in TEST_FILES)
RUNBOOKS = dict(
    re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", (ROOT / "docs/runbooks.md").read_text(), re.MULTILINE | re.DOTALL)
)
ALERTS = re.findall(r"^      - alert: (\w+)$", RULES, re.MULTILINE)
SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "info": ["_info"], "gauge": [""]}


@pytest.fixture(scope="module")
def promtool() -> str:
    try:
        return program()
    except debian.NoPackagesError as error:
        pytest.skip(f"no promtool here: {error}")


@pytest.mark.parametrize("words", [("check", "config", "prometheus.yml"), ("test", "rules", *TEST_FILES)])
def test_promtool_agrees(promtool: str, words: tuple[str, ...]) -> None:
    done = subprocess.run([promtool, *words], cwd=PROMETHEUS, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_loads_the_rules() -> None:
    assert "rule_files: [alerts.yml]" in (PROMETHEUS / "prometheus.yml").read_text()


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert set(ALERTS) == set(RUNBOOKS)


def test_every_alert_names_its_runbook() -> None:
    """By a URL that opens: Prometheus itself serves the page, see docker-compose.yml."""
    expected = [f'"{{{{ $externalURL }}}}/user/runbooks.md#{alert.lower()}"' for alert in ALERTS]
    assert re.findall(r"runbook_url: (.+)", RULES) == expected


def test_prometheus_serves_the_page_under_the_url_that_it_names() -> None:
    prometheus = COMPOSE.split("\n  prometheus:\n")[1].split("\n  grafana:\n")[0]
    assert "--web.user-assets=/runbooks" in prometheus
    assert "./docs/runbooks.md:/runbooks/runbooks.md:ro" in prometheus
    assert "--web.external-url=${PROMETHEUS_URL:-http://127.0.0.1:${PROMETHEUS_PORT:-9090}}" in prometheus


def test_a_replica_has_the_memory_that_the_alert_means() -> None:
    assert "mem_limit: ${MEMORY:-2g}" in COMPOSE
    assert re.search(r'alert: DragomanMemory\n.*\n.*job="dragoman"} > 0\.9 \* 2 \^ 31\n(.*\n)+?.* of its 2 GiB"', RULES)


@pytest.mark.parametrize("alert", sorted(RUNBOOKS))
def test_a_runbook_says_what_it_means_and_what_to_do(alert: str) -> None:
    assert re.fullmatch(r"\n\S.*\n\nLook at:\n\n- .*\n\nDo:\n\n- .*", RUNBOOKS[alert], re.DOTALL)


@pytest.mark.parametrize("alert", sorted(RUNBOOKS))
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
