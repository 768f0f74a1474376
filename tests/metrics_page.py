"""The page of metrics of a server, as Prometheus reads it."""

import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families

_OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Page(dict[tuple[str, tuple[tuple[str, str], ...]], float]):
    """Values by name and sorted labels."""

    def total(self, name: str, **labels: str) -> float:
        """The sum of all samples of this name, without its prefix, that have these labels."""
        return sum(
            value
            for (sample, its_labels), value in self.items()
            if sample == f"dragoman_{name}" and labels.items() <= dict(its_labels).items()
        )


def read(address: str, timeout_s: float) -> Page:
    """Read it.

    Raises:
        OSError: it does not come.
    """
    request = urllib.request.Request(f"http://{address}/metrics", headers={"Accept": _OPENMETRICS})
    with urllib.request.urlopen(request, timeout=timeout_s) as response:
        page = response.read().decode()
    families = text_string_to_metric_families(page)
    return Page(
        ((sample.name, tuple(sorted(sample.labels.items()))), sample.value)
        for family in families
        for sample in family.samples
    )
