"""Combines the metrics of several processes into one set."""

import operator
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

# How values of these gauges are combined; values of other gauges are added.
_GAUGES: Final[dict[str, Callable[[float, float], float]]] = {
    "dragoman_serving": min,
    "dragoman_files_in_force": min,
    "dragoman_bundle_errors": max,
    "dragoman_estimated_delay_seconds": max,
    "dragoman_step_age_seconds": max,
    "process_start_time_seconds": min,
}
_COUNTS: Final = ("counter", "histogram")
_MEMORY: Final = "process_resident_memory_bytes"


class Family(NamedTuple):
    """One metric.

    Attributes:
        text: the help text.
        kind: counter, gauge, histogram or info.
        samples: the name, labels and value of each sample.
    """

    name: str
    text: str
    kind: str
    samples: list[tuple[str, dict[str, str], float]]


class Page(NamedTuple):
    """All metrics of one process."""

    pid: int
    families: list[Family]


def page_of(registry: CollectorRegistry, pid: int) -> Page:
    """Read the metrics of this process; of memory that processes share, each has its share, so that sums are right."""
    share = _memory_share()
    return Page(
        pid,
        [
            Family(
                metric.name,
                metric.documentation,
                metric.type,
                [
                    (sample.name, sample.labels, share if share and sample.name == _MEMORY else sample.value)
                    for sample in metric.samples
                ],
            )
            for metric in registry.collect()
        ],
    )


def _memory_share() -> float:
    """Measure the proportional set size of this process, in bytes; 0 where the system does not tell it."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0.0)


def page_from_json(value: Any) -> Page:
    """Read a page from JSON."""
    pid, families = value
    return Page(pid, [Family(*family) for family in families])


class Totals:
    """Adds up pages. The last known counts of a process stay in the sums after its end."""

    def __init__(self) -> None:
        self._last: dict[int, Page] = {}
        self._ended: list[Family] = []

    def add(self, pages: dict[int, Page]) -> list[Metric]:
        """Give the combined metrics of all processes.

        Args:
            pages: the pages that could be read now, by a number that a process shares with its replacements.
        """
        for number, page in pages.items():
            before = self._last.get(number, page)
            if before.pid != page.pid:
                self._ended = _merged([self._ended, _counts(before)])
            self._last[number] = page
        silent = [_counts(page) for number, page in self._last.items() if number not in pages]
        return list(map(_metric, _merged([*(page.families for page in pages.values()), *silent, self._ended])))


def _counts(page: Page) -> list[Family]:
    return [family for family in page.families if family.kind in _COUNTS]


def _merged(pages: Iterable[list[Family]]) -> list[Family]:
    families: dict[str, Family] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for family in (family for page in pages for family in page):
        families.setdefault(family.name, family)
        found = values.setdefault(family.name, {})
        # Infos are the same in all processes.
        add: Callable[[float, float], float] = max if family.kind == "info" else _GAUGES.get(family.name, operator.add)
        for name, labels, value in family.samples:
            key = name, tuple(labels.items())
            found[key] = add(found[key], value) if key in found else value
    return [
        family._replace(samples=[(sample, dict(labels), value) for (sample, labels), value in values[name].items()])
        for name, family in families.items()
    ]


def _metric(family: Family) -> Metric:
    metric = Metric(family.name, family.text, family.kind)
    for name, labels, value in family.samples:
        metric.add_sample(name, labels, value)
    return metric
