"""Writes what is made from the sources: pages, OpenAPI, a PrometheusRule. `make docs` runs it; a test compares."""

from collections.abc import Callable
from pathlib import Path

from docs.generators import client, commands, contract, metrics, openapi, prometheus_rule, settings

DOCS = Path(__file__).parent
PAGES: dict[Path, Callable[[], str]] = {
    DOCS / "reference" / "client.md": client.page,
    DOCS / "reference" / "commands.md": commands.page,
    DOCS / "reference" / "contract.md": contract.page,
    DOCS / "reference" / "metrics.md": metrics.page,
    DOCS / "reference" / "settings.md": settings.page,
    openapi.FILE: openapi.page,
    prometheus_rule.FILE: prometheus_rule.page,
}

if __name__ == "__main__":
    for path, page in PAGES.items():
        path.write_text(page(), encoding="utf-8")
