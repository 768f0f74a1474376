"""The graphs of the models, opened once before the servers are forked, so that all share the same memory pages."""

from pathlib import Path

from dragoman.bundle import Bundle, Manifest, find_all_bundles
from service.engine.graphs import Graphs, open_graphs
from service.registry import allocator
from service.settings import Settings


class OpenedGraphs:
    """Graphs by bundle.

    Raises:
        BundleError: a bundle cannot be served.
    """

    def __init__(self, settings: Settings) -> None:
        self._graphs: dict[Path, tuple[Manifest, Graphs]] = {}
        if settings.model_memory_mb or settings.keep_alive_s:  # each server loads models when its own calls need them
            return
        for path in find_all_bundles(settings.model_folders):
            bundle = Bundle.open(path)
            self._graphs[path] = bundle.manifest, open_graphs(bundle, settings.device, shortlist=settings.shortlists)
        allocator.give_back()

    def take(self, bundle: Bundle) -> Graphs | None:
        """Give the graphs of a bundle, once; None if they were given, or the bundle has changed since."""
        manifest, graphs = self._graphs.pop(bundle.path, (None, None))
        return graphs if manifest == bundle.manifest else None
