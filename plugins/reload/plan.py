"""The plan of a reload, from the served models and the bundles on disk."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from dragoman.bundle import Manifest
from service.registry.folders import by_name, one_name


class Origin(NamedTuple):
    """The origin of a served model: the folder of its bundle, and the manifest when it was loaded."""

    path: Path
    manifest: Manifest


class Plan(NamedTuple):
    """The steps of a reload, in this order.

    Attributes:
        refuse: bundles whose name is in conflict with others, and the reason.
        load: bundles that are new or differ from the served bundle of their name.
        origins: the path of each model's bundle, by name, after these steps.
    """

    refuse: dict[Path, str]
    load: list[Path]
    origins: dict[str, Path]


def plan(served: Mapping[str, Origin], found: Mapping[Path, Manifest]) -> Plan:
    """Decide what to load.

    Args:
        served: the served models, by name.
        found: the valid bundles on disk.
    """
    refuse: dict[Path, str] = {}
    origins = {}
    for name, paths in by_name(found).items():
        own = served.get(name)
        chosen = own.path if own is not None and own.path in paths else paths[0] if len(paths) == 1 else None
        if chosen is not None:
            origins[name] = chosen
        refuse |= {path: one_name(name, paths) for path in paths if path != chosen}
    load = [path for name, path in origins.items() if name not in served or served[name].manifest != found[path]]
    return Plan(refuse, load, origins)


def gone(served: Mapping[str, Origin], found: Mapping[Path, Manifest], refused: Collection[Path]) -> set[str]:
    """List the served models that have no bundle on disk any more.

    A model whose own bundle, or every bundle of its name, was refused is not listed: the old model stays.

    Args:
        served: the served models, by name.
        found: the valid bundles on disk.
        refused: the refused bundles.
    """
    names = {manifest.name for manifest in found.values()}
    return {name for name, origin in served.items() if name not in names and origin.path not in refused}
