"""The alert rules of deploy/prometheus as the resource that the Prometheus operator reads."""

from pathlib import Path
from textwrap import indent

_DEPLOY = Path(__file__).parents[2] / "deploy"
FILE = _DEPLOY / "kubernetes/components/prometheus-operator/prometheusrule.yaml"
_RULES = _DEPLOY / "prometheus/alerts.yml"
_HEAD = """\
# Made by `make docs` from deploy/prometheus/alerts.yml: change that file.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: dragoman
  labels: {app.kubernetes.io/name: dragoman}
spec:
"""
_MEMORY = {"0.9 * 2 ^ 31": "0.9 * 2 ^ 30", "of its 2 GiB": "of its 1 GiB"}


def page() -> str:
    """Write the resource: the groups of rules with their comments, as the spec; a pod has 1 GiB of memory.

    Raises:
        ValueError: the file has no groups.
    """
    rules = _RULES.read_text(encoding="utf-8")
    for by_compose, by_kubernetes in _MEMORY.items():
        rules = rules.replace(by_compose, by_kubernetes)
    return _HEAD + indent(rules[rules.index("\ngroups:\n") + 1 :], "  ")
