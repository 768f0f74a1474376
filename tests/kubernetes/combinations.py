"""Which components are built together: none, each alone, and as many as go together."""

from itertools import chain, combinations
from typing import Final

from tests.kubernetes.kustomize import COMPONENTS, Document, base_with, example

# One autoscaler; one source of models; no CPU shows the work of a GPU, nor imports
# for it; gateways speak no TLS to pods by these routes.
APART: Final = [
    {"autoscaling-cpu", "autoscaling-keda"},
    {"models-image", "models-volume"},
    {"models-image", "models-named"},
    {"models-named", "models-volume"},
    {"gpu", "models-named"},
    {"autoscaling-cpu", "gpu"},
    {"gateway", "tls"},
]


def _largest_sets() -> list[tuple[str, ...]]:
    """Give the sets that no other component can join."""
    largest: list[set[str]] = []
    sizes = range(len(COMPONENTS), 0, -1)
    for names in map(set, chain.from_iterable(combinations(COMPONENTS, size) for size in sizes)):
        if not any(pair <= names for pair in APART) and not any(names <= other for other in largest):
            largest.append(names)
    return [tuple(sorted(names)) for names in largest]


LARGEST: Final = _largest_sets()
SETS: Final = [(), *((name,) for name in COMPONENTS), *LARGEST]
NAMES: Final = ["example", "base", *("+".join(names) for names in SETS if names)]


def built(name: str) -> list[Document]:
    """Build one of NAMES."""
    if name == "example":
        return example()
    return base_with(*(() if name == "base" else name.split("+")))
