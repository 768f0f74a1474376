"""The compose stack under test: commands, replicas, their metrics, Prometheus."""

import json
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine import Tools

from bench.server_process import free_ports

ROOT = Path(__file__).resolve().parents[2]


def until(condition: Callable[[], object], what: str, timeout_s: float = 300) -> None:
    """Wait for something that takes a moment, such as the next scrape."""
    give_up_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > give_up_s:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.5)


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


class Stack:
    """docker-compose.yml with stand-in images, on free ports of this host."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        names = ("GRPC_PORT", "HTTP_PORT", "PROMETHEUS_PORT", "GRAFANA_PORT")
        self._ports = dict(zip(names, free_ports(len(names)), strict=True))
        tools.env |= {name: str(port) for name, port in self._ports.items()}
        self.address = f"127.0.0.1:{self._ports['GRPC_PORT']}"
        self.http_address = f"127.0.0.1:{self._ports['HTTP_PORT']}"

    def compose(self, *words: str) -> str:
        """Run docker compose on the files of this repository."""
        files = ("-f", str(ROOT / "docker-compose.yml"), "-f", str(ROOT / "tests/compose/override.yml"))
        return self._tools.run("docker", "compose", *files, *words)

    def docker(self, *words: str) -> str:
        """Run docker."""
        return self._tools.run("docker", *words)

    def up(self, replicas: int) -> None:
        """Start what is not running, and wait until all of it is healthy."""
        wait = ("--wait", "--wait-timeout", "300")
        self.compose("up", "--detach", "--no-recreate", *wait, "--scale", f"dragoman={replicas}")
        until(lambda: self.query_value('sum(up{job="dragoman"})') == replicas, f"Prometheus sees {replicas} replicas")

    def down(self) -> None:
        """Stop all of it, and forget its volumes."""
        self.compose("down", "--volumes", "--timeout", "5")

    def name_models(self, models: str, mirror: Path) -> None:
        """From the next start on, serve models by their names, which come from a folder."""
        self._tools.env |= {"DRAGOMAN_MODELS": models, "MIRROR": str(mirror), "COMPOSE_PROFILES": "names"}

    def replicas(self) -> list[str]:
        """The ids of the running replicas."""
        return self.compose("ps", "--quiet", "dragoman").split()

    def inspect(self, container: str) -> Any:
        """What docker knows of a container."""
        return json.loads(self.docker("inspect", container))[0]

    def callers(self) -> set[str]:
        """Who has called the replicas, by their logs."""
        lines = self.compose("logs", "--no-color", "--no-log-prefix", "dragoman").splitlines()
        logged = [json.loads(line[line.index("{") :]) for line in lines if "{" in line]  # compose clears each line
        return {line["caller"] for line in logged if line["event"] == "request"}

    def calls(self, replica: str, method: str = "TranslateText") -> float:
        """How many calls of a method a replica has answered, by its own metrics."""
        [network] = self.inspect(replica)["NetworkSettings"]["Networks"].values()
        page = _get(f"http://{network['IPAddress']}:9464/metrics")
        lines = re.findall(rf'^dragoman_requests_total\{{.*method="{method}".*\}} (\S+)$', page, re.MULTILINE)
        return sum(map(float, lines))

    def query(self, expression: str) -> list[Any]:
        """Ask Prometheus.

        Returns:
            The series, without those that are not a number.

        Raises:
            urllib.error.HTTPError: it does not understand the expression.
        """
        words = urllib.parse.urlencode({"query": expression})
        answer = json.loads(_get(f"http://127.0.0.1:{self._ports['PROMETHEUS_PORT']}/api/v1/query?{words}"))
        return [series for series in answer["data"]["result"] if series["value"][1] != "NaN"]

    def rules(self) -> list[Any]:
        """The rules that Prometheus evaluates."""
        answer = json.loads(_get(f"http://127.0.0.1:{self._ports['PROMETHEUS_PORT']}/api/v1/rules"))
        return [rule for group in answer["data"]["groups"] for rule in group["rules"]]

    def query_value(self, expression: str) -> float:
        """Ask Prometheus for one number; 0 if there is none."""
        return float(next((series["value"][1] for series in self.query(expression)), 0))

    def prometheus(self, path: str) -> str:
        """Get a page of Prometheus."""
        return _get(f"http://127.0.0.1:{self._ports['PROMETHEUS_PORT']}{path}")

    def grafana(self, path: str) -> str:
        """Get a page of Grafana, or of what stands in for it."""
        return _get(f"http://127.0.0.1:{self._ports['GRAFANA_PORT']}{path}")
