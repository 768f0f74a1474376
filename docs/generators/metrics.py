"""The page of the metrics: every one with its kind, labels and meaning, from the metrics themselves."""

from docs.generators.markdown import one_line, table
from service.telemetry.metrics import Metrics, ModelMetrics, families

HEAD = """# The metrics

Made by `make docs` from the metrics themselves; all names begin with `dragoman_`.
[Observability](../observability.md) says how to read them."""


def page() -> str:
    """Write the page."""
    rows = [
        (f"`{name}`", family.kind.__name__.lower(), _listed((*labels, *family.labels)), one_line(family.text))
        for kind, labels in ((Metrics, ()), (ModelMetrics, ("model",)))
        for name, family in families(kind)
    ]
    [info] = Metrics().model_info.collect()  # made apart: labels of an Info come with its value
    rows.append(("`model_info`", info.type, _listed(("model", "precision", "device")), info.documentation))
    return f"{HEAD}\n\n{table(('metric', 'kind', 'labels', 'what'), rows)}\n"


def _listed(labels: tuple[str, ...]) -> str:
    return ", ".join(f"`{label}`" for label in labels)
