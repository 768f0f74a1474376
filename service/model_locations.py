"""The folders of the models: the folders that the settings name, or folders in which a plugin puts named models."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from service import plugins
from service.settings import DEFAULT_MODELS, Settings


class ModelLocations(NamedTuple):
    """The folders of the models of some names.

    Attributes:
        folders: bundles, and folders with bundles.
        pivot: the pivot language through which two models translate a pair that a name asks for; "": none is needed.
        on_demand: whether there are too many models for all of them to be in memory.
    """

    folders: Sequence[Path]
    pivot: str = ""
    on_demand: bool = False


def find(settings: Settings, *, bring_in: bool) -> ModelLocations:
    """Find the models of the settings on disk; with `bring_in`, import the models that are not there yet.

    The name of a model that comes with the server, such as en-de, means that model, unless there is such a folder.

    Raises:
        DragomanError: a name is unknown, or the list of Firefox's models is not available.
        OSError: the cache folder cannot be written to.
        SystemExit: a model could not be imported; the import has printed the reason.
    """
    settings = settings.model_copy(update={"models": tuple(_with_own(settings.models))})
    find_models: Callable[..., ModelLocations] | None = plugins.first(plugins.MODELS)
    return find_models(settings, bring_in=bring_in) if find_models else ModelLocations(settings.model_folders)


def _with_own(names: Sequence[str]) -> Iterator[str]:
    """Give the names, and in place of the name of a model that comes with the server its folder."""
    may_be_own = True
    for name in names:
        may_be_own = may_be_own and ":" not in name  # behind firefox:en-fr, de-en is a model of Firefox too
        own = DEFAULT_MODELS / name
        is_own = may_be_own and own.name == name and own.is_dir() and not Path(name).exists()
        yield str(own) if is_own else name
