"""Routes that were worked out, kept for the requests that ask for the same."""

from typing import Final, TypeAlias

from dragoman.v1 import translation_pb2 as pb
from service.handlers.route import Route
from service.registry.catalog import Catalog

_MOST: Final = 1_024  # kinds of requests; there are a few
_MOST_BYTES: Final = 1_024  # of the options of one

_Kind: TypeAlias = tuple[str, str, str, str, int, bytes]


class Routes:
    """The routes of one catalog at a time; lives on the event loop."""

    def __init__(self) -> None:
        self._catalog: Catalog | None = None
        self._routes: dict[_Kind, Route] = {}

    def find(self, request: pb.TranslateTextRequest, catalog: Catalog) -> Route | None:
        """Find the route of a request, if one like it was valid for the same models."""
        return self._routes.get(_kind(request)) if catalog is self._catalog else None

    def keep(self, request: pb.TranslateTextRequest, catalog: Catalog, route: Route) -> None:
        """Keep a route, where the next request like it has the same: nothing is drawn, and no glossary is read."""
        options = request.options
        if options.HasField("sampling") or options.HasField("glossary") or options.ByteSize() > _MOST_BYTES:
            return
        if catalog is not self._catalog or len(self._routes) >= _MOST:
            self._catalog, self._routes = catalog, {}
        self._routes[_kind(request)] = route


def _kind(request: pb.TranslateTextRequest) -> _Kind:
    """Give all that the route of a request depends on."""
    return (
        request.model,
        request.source_language_code,
        request.target_language_code,
        request.mime_type,
        request.priority,
        request.options.SerializeToString(),
    )
