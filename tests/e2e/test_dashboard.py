"""Every panel of the dashboard and every alert rule, asked of a real Prometheus that scrapes a real server."""

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from bench.server_process import free_ports
from dragoman import Client
from dragoman.errors import DragomanError

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((ROOT / "deploy/grafana/dashboards/dragoman.json").read_text())
# What Grafana writes in place of the variables where a user has chosen nothing.
VARIABLES = {"$__rate_interval": "30s", "$job": "dragoman", "$instance": ".*", "$model": ".*"}
# The balancer's are there in `make test-compose` only, which asks all of this of the whole stack.
QUERIES = sorted(
    {
        reduce(lambda query, name: query.replace(name, VARIABLES[name]), VARIABLES, target["expr"])
        for panel in DASHBOARD["panels"]
        for target in panel.get("targets", [])
        if "haproxy_" not in target["expr"]
    }
)
PATIENCE_S = 120.0
RULES = (ROOT / "deploy/prometheus/alerts.yml").read_text()
CONFIG = """
global: {{scrape_interval: 500ms, evaluation_interval: 500ms}}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: dragoman
    static_configs: [{{targets: ["{target}"]}}]
"""

prometheus = shutil.which("prometheus")
pytestmark = pytest.mark.skipif(prometheus is None, reason="no prometheus here: `make test-compose` has one")


class Prometheus:
    """A process on a free port of loopback, its data in a folder of its own."""

    def __init__(self, folder: Path, target: str, rules: str) -> None:
        config, rules_file = folder / "prometheus.yml", folder / "alerts.yml"
        rules_file.write_text(rules)
        config.write_text(CONFIG.format(rules=rules_file, target=target))
        address = f"127.0.0.1:{free_ports(1)[0]}"
        self._url = f"http://{address}/api/v1"
        options = {
            "config.file": config,
            "storage.tsdb.path": folder / "data",
            "web.listen-address": address,
            "web.external-url": f"http://{address}",
            "web.user-assets": ROOT / "docs",
        }
        command = [str(prometheus), *(f"--{name}={value}" for name, value in options.items())]
        self._log = (folder / "log").open("w")
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def get(self, path: str, **words: str) -> Any:
        try:
            with urllib.request.urlopen(f"{self._url}/{path}?{urllib.parse.urlencode(words)}", timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is still starting
                return {}
            raise AssertionError(f"{words}: {error.read().decode()}") from error
        except OSError:
            assert self._process.poll() is None, Path(self._log.name).read_text()
            return {}

    def has_data(self, query: str) -> bool:
        found = self.get("query", query=query).get("result", [])
        return any(series["value"][1] != "NaN" for series in found)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()


@pytest.fixture
def watch(tmp_path: Path, server) -> Iterator[Callable[[str], Prometheus]]:
    """Starts a Prometheus with these alert rules."""
    processes: list[Prometheus] = []

    def start(rules: str) -> Prometheus:
        processes.append(Prometheus(tmp_path, server.metrics_address, rules))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


def until(condition: Callable[[], bool], what: str, meanwhile: Callable[[], None]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_s, what
        meanwhile()


def test_the_link_of_an_alert_opens_its_page(watch: Callable[[str], Prometheus]) -> None:
    # There is a server, so this alert would not fire.
    watched = watch(re.sub(r"expr: absent\(.*\)\n +for: 2m", "expr: vector(1)", RULES))

    def links() -> list[str]:
        alerts = watched.get("alerts").get("alerts", [])
        return [alert["annotations"]["runbook_url"] for alert in alerts if alert["state"] == "firing"]

    until(lambda: links() != [], "no alert fires", lambda: time.sleep(0.2))
    [link] = links()
    with urllib.request.urlopen(link, timeout=60) as answer:
        assert answer.read().decode() == (ROOT / "docs/runbooks.md").read_text()


def test_every_panel_has_data_and_every_rule_can_be_evaluated(
    watch: Callable[[str], Prometheus], client: Client
) -> None:
    watched = watch(RULES)
    texts = iter(f"There are {number} trees in the garden, and {number} birds." for number in range(10**6))

    def load() -> None:
        """Something of each kind: new texts, known ones, a stream, an error."""
        for text in ("The garden is large.", *(next(texts) for _ in range(5))):
            client.translate(text, model="en-de")
        list(client.stream(next(texts), model="en-de"))
        with pytest.raises(DragomanError):
            client.translate([], model="en-de")

    for query in QUERIES:
        until(lambda query=query: watched.has_data(query), f"no data for {query}", load)

    def rules() -> list[dict[str, Any]]:
        return [rule for group in watched.get("rules").get("groups", []) for rule in group["rules"]]

    # Rules of all groups have been evaluated by then.
    until(lambda: {rule["health"] for rule in rules()} == {"ok"}, str(rules()), load)
    firing = {rule["name"] for rule in rules() if rule.get("state") == "firing"}
    assert not firing
    assert len(rules()) == len(re.findall(r"- (?:alert|record):", RULES))
