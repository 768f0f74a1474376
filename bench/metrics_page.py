"""The metrics page of a server: asked for, and read."""

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

_PREFIX = "dragoman_"


class Page(dict[tuple[str, tuple[tuple[str, str], ...]], float]):
    """Values by name and sorted labels."""

    @classmethod
    def parse(cls, text: str) -> "Page":
        """Read the text of a page, in the format of Prometheus; a ValueError where it is in another one."""
        samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
        return cls(((sample.name, tuple(sorted(sample.labels.items()))), sample.value) for sample in samples)

    def total(self, name: str, **labels: str) -> float:
        """Add up the samples of a metric, named without the prefix `dragoman_`, that have these labels."""
        return sum(
            value
            for (sample, its_labels), value in self.items()
            if sample == _PREFIX + name and labels.items() <= dict(its_labels).items()
        )

    def sums(self) -> dict[str, float]:
        """Add up the samples of each name, whatever their labels."""
        sums: dict[str, float] = {}
        for (name, _), value in self.items():
            sums[name] = sums.get(name, 0.0) + value
        return sums


def url(address: str) -> str:
    """Return where the page of a metrics address, `host:port`, is."""
    return f"http://{address}/metrics"


def fetch(address: str, timeout_s: float) -> str:
    """Ask for the page; an OSError where it does not come, a ValueError where it is not text."""
    with urllib.request.urlopen(url(address), timeout=timeout_s) as response:
        text: str = response.read().decode()
    return text


def read(address: str, timeout_s: float) -> Page:
    """Ask for the page and read it."""
    return Page.parse(fetch(address, timeout_s))
