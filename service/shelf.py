"""Where the models of the settings lie: in the folders that they name, or where a plugin puts what they name."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from service import plugins
from service.settings import Settings


class Shelf(NamedTuple):
    """Where the models of some names lie.

    Attributes:
        folders: bundles, and folders with bundles.
        pivot: the language over which two of them translate together what a name asks for; "": none is needed.
        on_demand: they are too many to be in memory all together.
    """

    folders: Sequence[Path]
    pivot: str = ""
    on_demand: bool = False


def find(settings: Settings) -> Shelf:
    """Find the models of the settings that lie on disk; nothing is imported.

    Raises:
        DataError: a name means nothing.
    """
    return _shelf(settings, bring_in=False)


def bring(settings: Settings) -> Shelf:
    """Find the models of the settings, and import what is not there yet.

    Raises:
        DragomanError: a name means nothing, or the list of Firefox's models cannot be had.
        OSError: the cache folder cannot be written to.
        SystemExit: a model could not be imported; the import has said why.
    """
    return _shelf(settings, bring_in=True)


def _shelf(settings: Settings, *, bring_in: bool) -> Shelf:
    find_models: Callable[..., Shelf] | None = plugins.first(plugins.MODELS)
    return find_models(settings, bring_in=bring_in) if find_models else Shelf(settings.model_folders)
